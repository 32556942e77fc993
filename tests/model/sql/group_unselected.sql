SELECT COUNT(*) FROM data GROUP BY sex
-- expect: all rows, by sex
