SELECT COUNT(*) FROM 'people.parquet'
-- expect: refused: there is one table, and it is called data: write FROM data.
