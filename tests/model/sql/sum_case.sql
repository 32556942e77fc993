SELECT SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM data
-- expect: sex = F
