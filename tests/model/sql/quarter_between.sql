SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) BETWEEN '2024-04-01' AND '2024-07-01'
-- expect: visit in 2024-04 … 2024-09
