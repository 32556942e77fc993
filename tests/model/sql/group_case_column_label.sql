SELECT CASE WHEN age < 20 THEN sex ELSE 'x' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: sex is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.
