SELECT COUNT(*) FROM data WHERE COUNT(*) > 5
-- expect: refused: COUNT(*) is not a declared column by its plain name.
