SELECT COUNT(*) FROM data AS d
-- expect: all rows
