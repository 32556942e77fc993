SELECT SUM(n) FROM (SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, sex, COUNT(*) AS n FROM data GROUP BY 1, 2) t WHERE band = 'old' GROUP BY sex
-- expect: sum of all rows of each band, of rows where age in 20–29 … 90–99
