SELECT COUNT(CASE WHEN sex = 'F' THEN pay END) FROM data
-- expect: pay in [0, 1000) … [2500.5, 10000) and sex = F
