SELECT COUNT(*) FROM data WHERE sex = 'F' AND sex = 'M'
-- expect: no row
