SELECT COUNT(*) FROM data WHERE age IN (SELECT age FROM data)
-- expect: refused: sub-selects are not answered (line 1, column 41); declare a view in the data source.
