SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) = '2024-04-01'
-- expect: visit in 2024-04 … 2024-06
