SELECT COUNT_IF(sex = 'F' AND age < 20) FROM data
-- expect: age in 0–9 … 10–19 and sex = F
