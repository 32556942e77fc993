SELECT SUM(1) FROM data WHERE sex = 'F'
-- expect: sex = F
