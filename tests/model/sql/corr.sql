SELECT CORR(age, pay) FROM data WHERE sex = 'F'
-- expect: the correlation of age and pay where sex = F
