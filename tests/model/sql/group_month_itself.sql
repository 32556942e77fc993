SELECT date_trunc('month', visit), COUNT(*) FROM data GROUP BY 1
-- expect: table of visit
