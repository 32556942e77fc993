SELECT date_trunc('quarter', visit) AS q, COUNT(*) FROM data GROUP BY 1 ORDER BY q DESC
-- expect: table of visit by quarter, by q downwards
