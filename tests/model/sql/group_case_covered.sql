SELECT CASE WHEN age < 20 THEN 'a' WHEN age < 10 THEN 'b' WHEN age >= 20 THEN 'c' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: table of age (a, c)
