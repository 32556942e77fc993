SELECT n, COUNT(*) FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region) GROUP BY n
-- expect: refused: rows are put together by their labels, not by their values.
