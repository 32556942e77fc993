SELECT COUNT(*) FROM data WHERE sex = "F"
-- expect: refused: "F" is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
