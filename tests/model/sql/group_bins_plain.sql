SELECT age / 50 * 50, COUNT(*) FROM data GROUP BY age / 50 * 50
-- expect: table of age by 50
