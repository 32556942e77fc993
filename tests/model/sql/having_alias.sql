SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING n > 5 AND AVG(age) < 50
-- expect: all rows, by sex, where ([all rows] > 5) and ([the mean of age] < 50)
