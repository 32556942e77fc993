SELECT region, COUNT(*) FROM data GROUP BY region OFFSET 2
-- expect: table of region, rows from 3
