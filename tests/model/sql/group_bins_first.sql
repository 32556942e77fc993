SELECT 20 * FLOOR(age / 20), COUNT(*) FROM data GROUP BY 1
-- expect: table of age by 20
