SELECT 1 - (SELECT COUNT(*) FROM data) - (SELECT COUNT(*) FROM data) - (SELECT COUNT(*) FROM data) - (SELECT COUNT(*) FROM data) FROM data
-- expect: refused: a statement has at most 4 SELECTs (line 1, column 103); declare a view in the data source.
