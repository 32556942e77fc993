SELECT COVAR_POP(pay, age) / VAR_POP(age) AS slope FROM data
-- expect: [the population covariance of pay and age] / [the population variance of age]
