SELECT MAX(n) FROM (SELECT date_trunc('quarter', visit) AS q, COUNT(*) AS n FROM data GROUP BY q) t WHERE q > '2024-01-01'
-- expect: max of all rows of each q, of rows where visit in 2024-04 … 2024-12
