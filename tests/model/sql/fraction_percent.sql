SELECT 100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(smoker) AS percent FROM data
-- expect: 100 * [the fraction of rows with smoker = true, among smoker ≠ unknown]
