SELECT region + 1, COUNT(*) FROM data GROUP BY region
-- expect: refused: region is a text, where a number is needed.
