SELECT CASE WHEN region LIKE 'n%' THEN 'n' ELSE 'rest' END AS first, COUNT(*) FROM data GROUP BY 1
-- expect: table of region (n, rest); of region that is abroad no comparison is known: it counts as not met
