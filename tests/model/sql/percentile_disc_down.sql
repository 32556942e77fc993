SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC) FROM data
-- expect: the 10% quantile of age
