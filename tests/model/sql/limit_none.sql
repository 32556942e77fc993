SELECT COUNT(*) FROM data LIMIT 0
-- expect: all rows, rows 1 to 0
