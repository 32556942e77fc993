SELECT FLOOR(age / 20) * 20 AS a, COUNT(*) FROM data GROUP BY a HAVING age >= 50
-- expect: refused: age >= 50 cuts the groups of age; choose rows with WHERE.
