SELECT COUNT(*) FROM data WHERE CAST(visit AS DATE) < '2024-04-01'
-- expect: visit in 2024-01 … 2024-03
