SELECT STDDEV(visit) FROM data
-- expect: refused: visit has dates, which have a median but no sum and no mean.
