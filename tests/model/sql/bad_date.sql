SELECT COUNT(*) FROM data WHERE visit < '2024-02-30'
-- expect: refused: visit takes dates like 2024-05-31, the question asks '2024-02-30'.
