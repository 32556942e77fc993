SELECT COUNT(*) FROM data WHERE 30 > age
-- expect: age in 0–9 … 20–29
