SELECT COUNT(*) FROM data WHERE age < ROUND(26)
-- expect: age in 0–9 … 20–29; age < 30 stands for age < 26
