SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY COUNT(*) DESC LIMIT 1
-- expect: table of region, by COUNT(*) downwards, rows 1 to 1
