SELECT AVG(IF(sex = 'F', 1, 0)) FROM data
-- expect: the fraction of rows with sex = F
