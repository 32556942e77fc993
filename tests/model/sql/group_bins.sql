SELECT FLOOR(age / 20) * 20 AS twenties, COUNT(*) FROM data GROUP BY twenties
-- expect: table of age by 20
