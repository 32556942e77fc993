SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 39
-- expect: age in 20–29 … 30–39
