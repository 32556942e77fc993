SELECT sex, COUNT(*) FROM data GROUP BY 1
-- expect: table of sex
