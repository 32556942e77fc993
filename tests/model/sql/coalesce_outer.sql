SELECT region, COUNT(*) AS n, COALESCE(n, 0), COALESCE(AVG(age), 0) FROM data GROUP BY region
-- expect: all rows; coalesce([all rows], 0); coalesce([the mean of age], 0), by region
