SELECT COUNT(*) FROM data WHERE age + 1 = 5
-- expect: refused: age + 1 is not a declared column by its plain name.
