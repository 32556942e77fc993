SELECT COUNT(*) FROM data LIMIT 0
-- expect: all rows, no rows
