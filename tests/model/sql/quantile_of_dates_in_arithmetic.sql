SELECT MEDIAN(visit) + 1 FROM data
-- expect: refused: visit has dates: their quantile is no number, so it is asked by itself.
