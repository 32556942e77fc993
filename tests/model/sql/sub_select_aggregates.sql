SELECT MAX(n) - MIN(n), SUM(n), AVG(n), COUNT(*) FILTER (WHERE n > 5) FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region) AS t
-- expect: [max of all rows of each region] - [min of all rows of each region]; sum of all rows of each region; avg of all rows of each region; count of rows where [all rows] > 5
