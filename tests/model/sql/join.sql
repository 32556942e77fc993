SELECT COUNT(*) FROM data JOIN data ON TRUE
-- expect: refused: JOIN is not answered here (line 1, column 27): declare a view in the data source.
