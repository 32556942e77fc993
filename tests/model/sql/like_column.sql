SELECT COUNT(*) FROM data WHERE region LIKE sex
-- expect: refused: sex is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
