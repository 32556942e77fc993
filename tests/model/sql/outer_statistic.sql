SELECT sex, STUMP(age, sex) FROM data GROUP BY sex
-- expect: refused: a statistic is asked by itself, about all rows: SELECT STUMP(age, ill) FROM data.
