SELECT REGR_SLOPE(balance, age) FROM data
-- expect: refused: REGR_SLOPE(balance, age) is not answered here: COVAR_POP(balance, age) / VAR_POP(age) is.
