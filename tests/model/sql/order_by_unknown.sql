SELECT region, COUNT(*) FROM data GROUP BY region ORDER BY regionn
-- expect: refused: unknown column 'regionn' (line 1, column 60); did you mean 'region'?
