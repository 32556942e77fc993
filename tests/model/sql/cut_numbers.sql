SELECT COUNT(*) FROM data WHERE pay < 2000
-- expect: refused: pay cannot be cut at 2000: the nearest bin edges are 1000 and 2500.5. ROUND(2000) takes the nearest.
