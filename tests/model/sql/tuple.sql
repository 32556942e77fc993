SELECT COUNT(*) FROM data WHERE (sex, age) = ('F', 20)
-- expect: refused: (sex, age) is not a declared column by its plain name.
