SELECT COUNT(*) FILTER (WHERE age < 20) / COUNT(*) FILTER (WHERE sex = 'F') FROM data
-- expect: [age in 0–9 … 10–19] / [sex = F]
