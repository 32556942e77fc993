SELECT COUNT(*) FROM data WHERE age >= 20 AND age < 40
-- expect: age in 20–29 … 30–39
