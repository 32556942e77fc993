WITH x AS (SELECT 1) SELECT COUNT(*) FROM data
-- expect: refused: WITH is not answered here (line 1, column 1): declare a view in the data source.
