SELECT COUNT(*) FROM data WHERE sex != 'F'
-- expect: sex = M
