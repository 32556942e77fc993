SELECT COUNT(*) FROM data WHERE NOT (sex = 'M' OR age < 20)
-- expect: age in 20–29 … 90–99 and sex = F
