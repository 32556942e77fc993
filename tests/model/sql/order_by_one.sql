SELECT COUNT(*) FROM data ORDER BY 1
-- expect: all rows
