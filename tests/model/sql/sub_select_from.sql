SELECT COUNT(*) FROM (SELECT * FROM data)
-- expect: all rows
