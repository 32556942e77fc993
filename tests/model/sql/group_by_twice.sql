SELECT sex, sex, COUNT(*) FROM data GROUP BY sex, sex
-- expect: refused: a table groups by each of its columns once.
