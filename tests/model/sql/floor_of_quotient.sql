SELECT FLOOR(age / 10), COUNT(*) FROM data GROUP BY 1
-- expect: refused: FLOOR(age / 10) is not answered here: FLOOR(age / 10) * 10 is.
