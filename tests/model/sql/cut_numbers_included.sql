SELECT COUNT(*) FROM data WHERE pay <= 1200
-- expect: refused: pay cannot be cut at 1200: the nearest bin edges are 1000 and 2500.5. ROUND(1200) takes the nearest.
