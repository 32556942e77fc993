SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY SUM(pay)
-- expect: refused: ORDER BY SUM(pay) is none of the columns of the statement.
