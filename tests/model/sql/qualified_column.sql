SELECT COUNT(*) FROM data WHERE data.sex = 'F'
-- expect: refused: data.sex is not a declared column by its plain name.
