SELECT SUM(pay) * 2 FROM data
-- expect: 2 * [the sum of pay]
