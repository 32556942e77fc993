SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY 2 ASC
-- expect: table of region, by COUNT(*) upwards
