SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) FROM data
-- expect: the 90% quantile of age
