SELECT COUNT(*) FROM data WHERE age < ROUND(23, 1)
-- expect: refused: ROUND(23, 1) is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
