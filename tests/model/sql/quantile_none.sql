SELECT QUANTILE_CONT(age) FROM data
-- expect: refused: a quantile is a share above 0 and below 1, like QUANTILE_CONT(age, 0.9).
