SELECT COUNT(*) FROM people
-- expect: refused: there is one table, and it is called data: write FROM data.
