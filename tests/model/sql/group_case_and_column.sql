SELECT IF(age < 20, 'young', 'old') AS band, sex, COUNT(*) FROM data GROUP BY band, sex
-- expect: table of age (young, old), sex
