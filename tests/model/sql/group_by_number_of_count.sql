SELECT sex, COUNT(*) FROM data GROUP BY 2
-- expect: refused: 2 is not a declared column by its plain name.
