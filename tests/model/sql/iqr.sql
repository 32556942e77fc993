SELECT IQR(age) FROM data
-- expect: refused: IQR(age) is not answered here: QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) is.
