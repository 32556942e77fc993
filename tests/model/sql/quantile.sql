SELECT QUANTILE(age, 0.25) FROM data
-- expect: the 25% quantile of age
