SELECT sex, VARIANCE(age) AS v, COUNT(*) FROM data GROUP BY sex ORDER BY v
-- expect: the variance of age; all rows, by sex, by v upwards
