SELECT sex, COUNT(*) FROM data GROUP BY sex FETCH FIRST 3 ROWS ONLY
-- expect: refused: FETCH is not answered here (line 1, column 45): LIMIT 3 takes the first three.
