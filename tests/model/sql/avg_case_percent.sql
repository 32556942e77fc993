SELECT AVG(CASE WHEN sex = 'F' THEN 100.0 ELSE 0 END) FROM data
-- expect: 100 * [the fraction of rows with sex = F]
