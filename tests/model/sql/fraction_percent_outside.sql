SELECT 100 * (COUNT(*) FILTER (WHERE smoker) / COUNT(smoker)) FROM data
-- expect: the fraction of rows with smoker = true, among smoker ≠ unknown
