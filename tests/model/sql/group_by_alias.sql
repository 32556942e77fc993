SELECT sex AS s, COUNT(*) FROM data GROUP BY s
-- expect: table of sex
