SELECT AVG(pay), MEDIAN(pay) FROM data
-- expect: the mean of pay; the 50% quantile of pay
