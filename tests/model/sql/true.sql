SELECT COUNT(*) FROM data WHERE TRUE
-- expect: all rows
