SELECT SUM(COALESCE(pay, 0)) FROM data WHERE sex = 'F'
-- expect: the sum of pay where sex = F
