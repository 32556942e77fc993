SELECT age, CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM data GROUP BY age
-- expect: case when age in 0–9 … 10–19 then 'young' else 'old' end; all rows, by age
