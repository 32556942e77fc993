SELECT sex, MEDIAN(visit) FROM data GROUP BY sex
-- expect: refused: visit has dates: their quantile is no number, so it is asked by itself.
