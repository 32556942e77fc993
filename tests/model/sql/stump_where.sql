SELECT STUMP(age, sex) FROM data WHERE sex = 'F'
-- expect: refused: a statistic is asked by itself, about all rows: SELECT STUMP(age, ill) FROM data.
