SELECT COUNT(*) FILTER (WHERE sex = 'F') FROM data
-- expect: sex = F
