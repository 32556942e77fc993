SELECT COUNT(*) FROM data WHERE sex IN ('F', NULL)
-- expect: refused: NULL is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
