SELECT sex, COUNT(*) FROM data GROUP BY ROLLUP (sex)
-- expect: refused: ROLLUP is not answered here (line 1, column 41): ask for totals in a statement of their own, which groups by fewer columns.
