SELECT sex, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM data WHERE region = 'north') FROM data GROUP BY sex
-- expect: (100 * [all rows]) / [region = north], by sex
