SELECT COUNT(*) FROM data WHERE sex = 'F' OR sex = 'M'
-- expect: all rows
