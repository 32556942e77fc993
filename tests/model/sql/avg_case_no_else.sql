SELECT AVG(CASE WHEN sex = 'F' THEN age END) FROM data
-- expect: the mean of age where sex = F
