SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) < '2024-05-01'
-- expect: visit in 2024-01 … 2024-06
