SELECT STDDEV(CASE WHEN sex = 'F' THEN age END) FROM data
-- expect: the standard deviation of age where sex = F
