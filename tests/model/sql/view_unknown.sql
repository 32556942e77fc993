SELECT COUNT(*) / (SELECT COUNT(*) FROM v) FROM v WHERE sex = 'F'
-- expect: refused: there is one table, and it is called data: write FROM data.
