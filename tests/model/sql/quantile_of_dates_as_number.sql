SELECT COUNT(*) / (SELECT MEDIAN(visit) FROM data) FROM data
-- expect: refused: visit has dates: their quantile is no number, so it is asked by itself.
