SELECT COUNT(*) FROM data WHERE sex < ROUND('a')
-- expect: refused: sex has no order, so nothing is rounded to its edges.
