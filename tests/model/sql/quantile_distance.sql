SELECT QUANTILE_DISTANCE(age, 0.5, 30, 59) FROM data
-- expect: rows to replace for the 1/2-quantile of age to lie in 30–39 … 50–59
