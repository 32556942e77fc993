SELECT COUNT(*), COUNT(*) FROM data
-- expect: all rows; all rows
