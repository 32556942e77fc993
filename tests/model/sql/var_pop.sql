SELECT VAR_POP(pay) FROM data
-- expect: the population variance of pay
