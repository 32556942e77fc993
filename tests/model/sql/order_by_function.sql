SELECT sex, COUNT(*) FROM data GROUP BY sex ORDER BY count DESC
-- expect: table of sex, by COUNT(*) downwards
