SELECT YEAR(visit) AS y, COUNT(*) FROM data GROUP BY y
-- expect: table of visit by year
