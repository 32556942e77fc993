SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 40
-- expect: refused: age cannot be cut at 41: the nearest bin edges are 40 and 50.
