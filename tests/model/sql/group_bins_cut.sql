SELECT FLOOR(age / 15) * 15, COUNT(*) FROM data GROUP BY 1
-- expect: refused: age cannot be grouped by 15: bins that start at its multiples would cut the declared ones; the widths that fit are 10, 20, 30, 40, 50.
