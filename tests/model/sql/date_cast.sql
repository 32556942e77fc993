SELECT COUNT(*) FROM data WHERE visit <= CAST('2024-02-29' AS DATE)
-- expect: visit in 2024-01 … 2024-02
