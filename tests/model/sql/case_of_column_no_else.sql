SELECT SUM(CASE WHEN sex = 'F' THEN age END) FROM data
-- expect: the sum of age where sex = F
