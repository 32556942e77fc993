SELECT COUNT(*) AS rows FROM data
-- expect: all rows
