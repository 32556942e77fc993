SELECT COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / COUNT(*) FROM data WHERE age < 20
-- expect: the fraction of rows with age in 0–9 … 10–19 and sex = F, among age in 0–9 … 10–19
