SELECT COUNT(*) FROM (SELECT * FROM data)
-- expect: refused: sub-selects are not answered (line 1, column 23); declare a view in the data source.
