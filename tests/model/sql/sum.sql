SELECT SUM(pay) FROM data
-- expect: the sum of pay
