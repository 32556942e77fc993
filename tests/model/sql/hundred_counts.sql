SELECT 100 * COUNT(*) FROM data
-- expect: 100 * [all rows]
