SELECT * FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region) WHERE n > 5 ORDER BY n LIMIT 2
-- expect: table of region, where [all rows] > 5, by n upwards, rows 1 to 2
