SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 40
-- expect: refused: age cannot be cut after 40: the nearest bins end with 39 and 49. ROUND(40) takes the nearest.
