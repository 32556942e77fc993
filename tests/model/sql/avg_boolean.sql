SELECT AVG(smoker) FROM data WHERE sex = 'F'
-- expect: the fraction of rows with sex = F and smoker = true, among sex = F and smoker ≠ unknown
