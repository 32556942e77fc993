SELECT SUM(age) / SUM(pay) FROM data
-- expect: [the sum of age] / [the sum of pay]
