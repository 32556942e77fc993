SELECT COUNT(*) FROM data WHERE visit >= DATE '2024-03-01'
-- expect: visit in 2024-03 … 2024-12
