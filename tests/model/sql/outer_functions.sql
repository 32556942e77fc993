SELECT ROUND(SQRT(ABS(AVG(age) - 50)), 2), POWER(AVG(age), 2), LEAST(COUNT(*), 10), COALESCE(LN(COUNT(*)), 0) FROM data
-- expect: round(sqrt(abs([the mean of age] - 50)), 2); power([the mean of age], 2); least([all rows], 10); coalesce(ln([all rows]), 0)
