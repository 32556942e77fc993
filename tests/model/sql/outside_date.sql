SELECT COUNT(*) FROM data WHERE visit < '2031-01-01'
-- expect: refused: visit takes 2024-01-01 to 2024-12-31, the question asks 2031-01-01.
