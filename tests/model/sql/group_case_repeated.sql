SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END, COUNT(*) FROM data GROUP BY CASE WHEN age < 20 THEN 'young' ELSE 'old' END
-- expect: table of age (young, old)
