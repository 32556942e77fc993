SELECT MEDIAN(age) FROM data WHERE sex = 'F'
-- expect: the 50% quantile of age where sex = F
