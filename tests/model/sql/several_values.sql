SELECT COUNT(*) AS n, AVG(age) AS mean, SUM(pay) FROM data WHERE sex = 'F'
-- expect: sex = F; the mean of age where sex = F; the sum of pay where sex = F
