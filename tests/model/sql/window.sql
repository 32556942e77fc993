SELECT COUNT(*) OVER () FROM data
-- expect: refused: OVER is not answered here (line 1, column 17): a share of all rows is COUNT(*) * 100.0 / (SELECT COUNT(*) FROM data), and ORDER BY sorts the groups.
