SELECT MIN(pay) FROM data
-- expect: refused: MIN(pay) is decided by single rows, so it is not answered; ask for a quantile, like QUANTILE_CONT(pay, 0.01).
