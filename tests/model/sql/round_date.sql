SELECT COUNT(*) FROM data WHERE visit < ROUND(DATE '2024-05-17')
-- expect: visit in 2024-01 … 2024-05; visit < 2024-06-01 stands for visit < 2024-05-17
