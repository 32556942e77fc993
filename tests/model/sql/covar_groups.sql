SELECT sex, COVAR_POP(age, balance), COVAR_SAMP(balance, age) FROM data GROUP BY sex
-- expect: the population covariance of age and balance; the covariance of balance and age, by sex
