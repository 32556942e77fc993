SELECT STDDEV(age) FROM data
-- expect: the standard deviation of age
