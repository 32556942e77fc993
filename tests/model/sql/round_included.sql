SELECT COUNT(*) FROM data WHERE age <= ROUND(29)
-- expect: age in 0–9 … 20–29
