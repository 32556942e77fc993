SELECT age, MEDIAN(age) FROM data GROUP BY age
-- expect: refused: a quantile of age is not grouped by age itself.
