SELECT IF(age < 20, 1e999, 0) AS b, COUNT(*) FROM data GROUP BY b
-- expect: refused: numbers are below 1e300.
