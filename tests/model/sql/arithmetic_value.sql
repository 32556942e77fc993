SELECT COUNT(*) FROM data WHERE age < 10 + 10
-- expect: refused: 10 + 10 is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
