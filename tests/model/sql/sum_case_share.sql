SELECT 100.0 * SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) / COUNT(*) FROM data
-- expect: 100 * [the fraction of rows with sex = F]
