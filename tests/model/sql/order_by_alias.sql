SELECT region, COUNT(*) AS n FROM data GROUP BY region ORDER BY n DESC, region LIMIT 2 OFFSET 1
-- expect: table of region, by n downwards, by region upwards, rows 2 to 3
