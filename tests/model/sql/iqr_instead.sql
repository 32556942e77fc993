SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) FROM data
-- expect: [the 75% quantile of age] - [the 25% quantile of age]
