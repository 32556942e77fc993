SELECT date_trunc('quarter', visit) AS q, COUNT(*) FROM data GROUP BY q HAVING q >= '2024-04-01'
-- expect: table of visit by quarter, where visit in 2024-04 … 2024-12
