SELECT COUNT(CASE WHEN sex = 'F' THEN 'x' END) FROM data
-- expect: sex = F
