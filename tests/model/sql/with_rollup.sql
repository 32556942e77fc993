SELECT sex, COUNT(*) FROM data GROUP BY sex WITH ROLLUP
-- expect: refused: ROLLUP is not answered here (line 1, column 50): ask for totals in a statement of their own, which groups by fewer columns.
