SELECT CORR(age, sex) FROM data
-- expect: refused: sex is not a number, so it has no sum and no mean.
