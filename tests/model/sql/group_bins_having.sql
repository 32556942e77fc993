SELECT FLOOR(age / 20) * 20 AS a, COUNT(*) AS n FROM data GROUP BY a HAVING a >= 40 AND n > 10
-- expect: table of age by 20, where (age in 40–49 … 90–99) and ([all rows] > 10)
