SELECT CAST(date_trunc('quarter', visit) AS DATE), COUNT(*) FROM data GROUP BY date_trunc('quarter', visit)::date
-- expect: table of visit by quarter
