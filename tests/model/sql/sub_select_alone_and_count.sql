SELECT (SELECT COUNT(*) FROM data WHERE sex = 'F') + COUNT(*)
-- expect: refused: there is one table, and it is called data: write FROM data.
