SELECT COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) FROM data
-- expect: the fraction of rows with sex = F
