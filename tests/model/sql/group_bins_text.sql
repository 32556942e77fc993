SELECT FLOOR(sex / 2) * 2, COUNT(*) FROM data GROUP BY 1
-- expect: refused: sex is not a number, so it has no bins to widen; group by sex itself.
