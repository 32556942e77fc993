SELECT COUNT(*) FROM data WHERE 2025 > YEAR(visit)
-- expect: all rows
