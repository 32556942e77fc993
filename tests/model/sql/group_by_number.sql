SELECT sex, COUNT(*) FROM data GROUP BY 1
-- expect: refused: 1 is not a declared column by its plain name.
