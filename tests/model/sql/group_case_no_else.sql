SELECT CASE WHEN age < 20 THEN 'young' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: table of age (young, –)
