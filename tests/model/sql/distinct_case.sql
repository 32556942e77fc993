SELECT DISTINCT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band FROM data
-- expect: the declared values of age (young, old)
