SELECT COUNT(*) FROM data WHERE NOT (sex = 'F' AND age < 20)
-- expect: not (age in 0–9 … 10–19 and sex = F)
