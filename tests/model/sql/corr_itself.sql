SELECT CORR(age, age) FROM data
-- expect: refused: a covariance is of two attributes; of one with itself it is the variance.
