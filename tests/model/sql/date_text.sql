SELECT COUNT(*) FROM data WHERE visit < '2024-03-01'
-- expect: visit in 2024-01 … 2024-02
