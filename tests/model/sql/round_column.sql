SELECT COUNT(*) FROM data WHERE ROUND(age) < 23
-- expect: refused: ROUND(age) is not a declared column by its plain name.
