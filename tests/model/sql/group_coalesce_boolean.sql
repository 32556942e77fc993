SELECT COALESCE(smoker, FALSE) AS s, COUNT(*) FROM data GROUP BY s
-- expect: table of smoker (false, true)
