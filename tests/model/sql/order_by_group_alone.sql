SELECT COUNT(*) FROM data GROUP BY region ORDER BY region DESC
-- expect: all rows, by region, by region downwards
