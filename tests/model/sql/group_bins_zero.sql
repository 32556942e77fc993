SELECT FLOOR(age / 0) * 0, COUNT(*) FROM data GROUP BY 1
-- expect: refused: bins are written FLOOR(age / 10) * 10, with the same number twice.
