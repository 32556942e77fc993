SELECT COUNT(region) FILTER (WHERE sex = 'F') FROM data WHERE age < 20
-- expect: age in 0–9 … 10–19 and region ≠ unknown and sex = F
