SELECT COUNT(CASE WHEN sex = 'F' THEN 1 END) FROM data WHERE age < 20
-- expect: age in 0–9 … 10–19 and sex = F
