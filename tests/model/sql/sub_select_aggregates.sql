SELECT MAX(n) - MIN(n), SUM(n), AVG(n), COUNT(*) FILTER (WHERE n > 5) FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region) AS t
-- expect: [max of all rows] - [min of all rows]; sum of all rows; avg of all rows; count of rows where [all rows] > 5
