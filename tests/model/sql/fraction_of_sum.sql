SELECT SUM(pay) / COUNT(*) FROM data
-- expect: [the sum of pay] / [all rows]
