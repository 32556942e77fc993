SELECT COUNT(*) FROM data WHERE date_trunc('month', visit)::date = '2024-04'
-- expect: visit = 2024-04
