SELECT 100 * (COUNT(*) FILTER (WHERE smoker) / COUNT(smoker)) FROM data
-- expect: 100 * [the fraction of rows with smoker = true, among smoker ≠ unknown]
