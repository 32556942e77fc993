SELECT COUNT(*)
FROM data
WHERE sex = 'F'
  AND age < 20
-- expect: age in 0–9 … 10–19 and sex = F
