SELECT LEFT(region, 1), COUNT(*) FROM data GROUP BY 1
-- expect: refused: LEFT is not answered here (line 1, column 8): write a LIKE 'A%', or CASE WHEN a LIKE 'A%' THEN 'A' … END to group by it.
