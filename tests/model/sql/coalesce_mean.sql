SELECT AVG(COALESCE(pay, 0)) FROM data
-- expect: refused: the mean of COALESCE(pay, 0) is not answered here; write SUM(pay) / COUNT(*).
