SELECT sex, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM data) FROM data GROUP BY sex
-- expect: (100 * [all rows]) / [all rows], by sex
