WITH x AS (SELECT 1) SELECT COUNT(*) FROM data
-- expect: refused: there is one table, and it is called data: write FROM data.
