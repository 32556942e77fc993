SELECT COUNT(*) FROM data LEFT JOIN other ON TRUE
-- expect: refused: LEFT is not answered here (line 1, column 27): declare a view in the data source.
