SELECT SUM(IF(sex = 'F', age, 0)) FROM data
-- expect: the sum of age where sex = F
