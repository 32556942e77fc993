SELECT MEDIAN(age) + 1 FROM data
-- expect: refused: a quantile is a bin, not a number: it is asked by itself.
