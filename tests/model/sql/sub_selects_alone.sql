SELECT (SELECT COUNT(*) FROM data WHERE sex = 'F') + (SELECT COUNT(*) FROM data WHERE age < 20)
-- expect: [sex = F] + [age in 0–9 … 10–19]
