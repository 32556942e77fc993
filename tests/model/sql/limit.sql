SELECT COUNT(*) FROM data LIMIT 1
-- expect: all rows
