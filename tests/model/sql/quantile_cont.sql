SELECT QUANTILE_CONT(age, 0.9) FROM data
-- expect: the 90% quantile of age
