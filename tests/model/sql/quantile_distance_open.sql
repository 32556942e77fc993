SELECT QUANTILE_DISTANCE(age, 0.9, NULL, 59) FROM data
-- expect: rows to replace for the 9/10-quantile of age to lie in 0–9 … 50–59
