SELECT VARIANCE(age) FROM data WHERE sex = 'F'
-- expect: the variance of age where sex = F
