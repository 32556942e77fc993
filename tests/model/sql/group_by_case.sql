SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS g, COUNT(*) FROM data GROUP BY g
-- expect: table of age (young, old)
