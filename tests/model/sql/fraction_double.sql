SELECT COUNT(*) FILTER (WHERE sex = 'F')::DOUBLE / COUNT(*) FROM data
-- expect: the fraction of rows with sex = F
