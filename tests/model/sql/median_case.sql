SELECT MEDIAN(CASE WHEN sex = 'F' THEN age END) FROM data
-- expect: the 50% quantile of age where sex = F
