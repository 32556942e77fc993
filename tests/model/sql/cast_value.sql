SELECT COUNT(*) FROM data WHERE age < CAST('20' AS INTEGER)
-- expect: refused: CAST('20' AS INT) is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
