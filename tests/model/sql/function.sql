SELECT COUNT(*) FROM data WHERE lower(sex) = 'f'
-- expect: refused: LOWER(sex) is not a declared column by its plain name.
