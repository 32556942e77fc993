SELECT date_part('year', visit), COUNT(*) FROM data GROUP BY 1
-- expect: table of visit by year
