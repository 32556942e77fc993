SELECT COUNT(*) - COUNT(*) FILTER (WHERE sex = 'F') AS others FROM data
-- expect: [all rows] - [sex = F]
