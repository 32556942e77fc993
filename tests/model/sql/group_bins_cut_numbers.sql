SELECT FLOOR(pay / 2000) * 2000, COUNT(*) FROM data GROUP BY 1
-- expect: refused: pay cannot be grouped by 2000: bins that start at its multiples would cut the declared ones; no width fits.
