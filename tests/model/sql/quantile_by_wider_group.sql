SELECT FLOOR(age / 20) * 20, QUANTILE_CONT(pay, 0.9) FROM data GROUP BY 1
-- expect: the 90% quantile of pay, by age by 20
