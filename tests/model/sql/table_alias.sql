SELECT COUNT(*) FROM data AS d
-- expect: refused: there is one table, and it is called data: write FROM data.
