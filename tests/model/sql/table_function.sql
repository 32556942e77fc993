SELECT COUNT(*) FROM read_csv('/etc/passwd')
-- expect: refused: there is one table, and it is called data: write FROM data.
