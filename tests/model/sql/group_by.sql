SELECT sex, COUNT(*) FROM data GROUP BY sex
-- expect: table of sex
