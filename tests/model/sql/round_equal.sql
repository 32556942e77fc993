SELECT COUNT(*) FROM data WHERE age = ROUND(23)
-- expect: age = 20–29; the bin 20–29 of age stands for age = 23
