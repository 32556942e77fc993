SELECT CASE WHEN age < 20 THEN 2 WHEN age < 40 THEN 1 ELSE 1.5 END AS band, COUNT(*) FROM data GROUP BY band
-- expect: table of age (1, 1.5, 2)
