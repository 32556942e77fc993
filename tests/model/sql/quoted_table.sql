SELECT COUNT(*) FROM "data"
-- expect: all rows
