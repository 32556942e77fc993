SELECT AVG(age) FROM data WHERE sex = 'F'
-- expect: the mean of age where sex = F
