SELECT region, SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END) AS women, COUNT(CASE WHEN age < 20 THEN 1 END) FROM data GROUP BY region
-- expect: the sum of age where sex = F; age in 0–9 … 10–19, by region
