SELECT COUNT(*) FROM data WHERE sex = region
-- expect: refused: region is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
