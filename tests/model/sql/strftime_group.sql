SELECT strftime(visit, '%Y-%m'), COUNT(*) FROM data GROUP BY 1
-- expect: table of visit
