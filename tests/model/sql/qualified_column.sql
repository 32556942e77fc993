SELECT COUNT(*) FROM data WHERE data.sex = 'F'
-- expect: sex = F
