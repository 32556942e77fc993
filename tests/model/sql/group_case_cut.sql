SELECT CASE WHEN age < 18 AND age > 3 THEN 'child' ELSE 'adult' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: age cannot be cut at 18: the nearest bin edges are 10 and 20. ROUND(18) takes the nearest.
