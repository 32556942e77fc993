SELECT strftime(visit, '%Y'), COUNT(*) FROM data GROUP BY 1
-- expect: table of visit by year
