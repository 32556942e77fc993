WITH t AS (SELECT region, COUNT(*) AS n FROM data GROUP BY region) SELECT region, n FROM t WHERE n > (SELECT AVG(n) FROM t)
-- expect: table of region, where [all rows] > [avg of all rows of each region]
