SELECT sex, COUNT(*) FROM data GROUP BY sex ORDER BY sex
-- expect: table of sex, by sex upwards
