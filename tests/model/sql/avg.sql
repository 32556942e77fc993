SELECT AVG(age) FROM data
-- expect: the mean of age
