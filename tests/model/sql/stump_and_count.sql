SELECT STUMP(age, sex), COUNT(*) FROM data
-- expect: refused: a statistic is asked by itself, about all rows: SELECT STUMP(age, ill) FROM data.
