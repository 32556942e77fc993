SELECT COUNT(*) FROM data WHERE age > (SELECT 30)
-- expect: refused: sub-selects are not answered (line 1, column 40); declare a view in the data source.
