SELECT COUNT(*) FROM data HAVING COUNT(*) > 5
-- expect: all rows, where [all rows] > 5
