SELECT CASE WHEN date_trunc('quarter', visit) <= '2024-04-01' THEN 'first half' ELSE 'second' END AS half, COUNT(*) FROM data GROUP BY half
-- expect: table of visit (first half, second)
