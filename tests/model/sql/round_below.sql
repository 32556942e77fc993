SELECT COUNT(*) FROM data WHERE age < ROUND(23)
-- expect: age in 0–9 … 10–19; age < 20 stands for age < 23
