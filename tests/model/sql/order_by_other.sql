SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY SUM(pay)
-- expect: all rows, by region, by the sum of pay upwards
