SELECT sex, COUNT(*) FROM data GROUP BY sex WITH ROLLUP
-- expect: refused: WITH is not answered here (line 1, column 45): declare a view in the data source.
