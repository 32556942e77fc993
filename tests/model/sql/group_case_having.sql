SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, COUNT(*) AS n FROM data GROUP BY band HAVING band = 'young' AND n > 5
-- expect: table of age (young, old), where (age in 0–9 … 10–19) and ([all rows] > 5)
