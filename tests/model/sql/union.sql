SELECT COUNT(*) FROM data UNION ALL SELECT COUNT(*) FROM data
-- expect: refused: UNION is not answered here (line 1, column 27): declare a view in the data source.
