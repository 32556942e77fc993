SELECT sex, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () FROM data GROUP BY sex
-- expect: refused: OVER is not answered here (line 1, column 46): a share of all rows is COUNT(*) * 100.0 / (SELECT COUNT(*) FROM data), and ORDER BY sorts the groups.
