SELECT STDDEV_POP(balance) FILTER (WHERE smoker) FROM data
-- expect: the population standard deviation of balance where smoker = true
