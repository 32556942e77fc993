SELECT age FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region)
-- expect: refused: age is none of the columns of the statement in FROM: region, n.
