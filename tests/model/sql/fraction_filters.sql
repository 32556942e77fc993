SELECT COUNT(*) FILTER (WHERE age < 20 AND sex = 'F') / COUNT(*) FILTER (WHERE sex = 'F') FROM data
-- expect: the fraction of rows with age in 0–9 … 10–19 and sex = F, among sex = F
