SELECT SUM(CASE WHEN sex = 'F' THEN 2 ELSE 0 END) FROM data
-- expect: 2 * [sex = F]
