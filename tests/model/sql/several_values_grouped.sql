SELECT sex, COUNT(*) AS n, AVG(age), AVG(smoker) FROM data GROUP BY sex
-- expect: all rows; the mean of age; the fraction of rows with smoker = true, among smoker ≠ unknown, by sex
