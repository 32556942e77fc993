SELECT CASE WHEN age < ROUND(18) THEN 'child' ELSE 'adult' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: table of age (child, adult); age < 20 stands for age < 18
