SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) NOT IN ('2024-01-01', DATE '2024-10-01')
-- expect: visit in 2024-04 … 2024-09
