SELECT MAX(age) FROM data
-- expect: refused: MAX(age) is decided by single rows, so it is not answered; ask for a quantile, like QUANTILE_CONT(age, 0.99).
