SELECT STDDEV_SAMP(age) FROM data
-- expect: the standard deviation of age
