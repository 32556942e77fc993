SELECT MAX(pay * 2) FROM data
-- expect: refused: MAX(pay * 2) is decided by single rows, so it is not answered; QUANTILE_CONT takes a declared column, and a share like 0.99.
