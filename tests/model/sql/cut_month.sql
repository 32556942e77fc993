SELECT COUNT(*) FROM data WHERE visit <= '2024-02-28'
-- expect: refused: visit cannot be cut at 2024-02-29: the nearest bin edges are 2024-02-01 and 2024-03-01.
