SELECT sex, COUNT(*) FROM data GROUP BY sex HAVING COUNT(*) > 5
-- expect: table of sex, where [all rows] > 5
