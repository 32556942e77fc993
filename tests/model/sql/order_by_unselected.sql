SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY age
-- expect: refused: ORDER BY age is none of the columns of the statement.
