SELECT COUNT(*) FROM data WHERE date_trunc('month', visit) = '2024-04-01'
-- expect: visit = 2024-04
