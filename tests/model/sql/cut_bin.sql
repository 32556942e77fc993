SELECT COUNT(*) FROM data WHERE age < 25
-- expect: refused: age cannot be cut at 25: the nearest bin edges are 20 and 30. ROUND(25) takes the nearest.
