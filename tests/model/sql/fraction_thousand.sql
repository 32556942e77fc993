SELECT 1000 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) FROM data
-- expect: 1000 * [the fraction of rows with sex = F]
