SELECT COUNT(*) FROM data WHERE sex = 'F' OR age < 20
-- expect: not (age in 20–29 … 90–99 and sex = M)
