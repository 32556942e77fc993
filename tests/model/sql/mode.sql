SELECT MODE(region) FROM data
-- expect: refused: MODE(region) is not answered here: SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY COUNT(*) DESC LIMIT 1 is.
