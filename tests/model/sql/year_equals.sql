SELECT COUNT(*) FROM data WHERE YEAR(visit) = 2024
-- expect: all rows
