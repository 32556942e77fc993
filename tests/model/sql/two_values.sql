SELECT COUNT(*) FROM data WHERE 1 = 1
-- expect: refused: 1 is not a declared column by its plain name.
