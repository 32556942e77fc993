SELECT COUNT(*) FROM data GROUP BY CASE WHEN age < 20 THEN 'young' ELSE 'old' END
-- expect: all rows, by age (young, old)
