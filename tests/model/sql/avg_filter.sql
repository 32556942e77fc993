SELECT AVG(pay) FILTER (WHERE sex = 'F') FROM data WHERE age < 20
-- expect: the mean of pay where age in 0–9 … 10–19 and sex = F
