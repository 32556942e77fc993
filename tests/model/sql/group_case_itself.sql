SELECT age, CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM data GROUP BY age, band
-- expect: refused: a table groups by each of its columns once.
