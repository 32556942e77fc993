SELECT COUNT(*) FROM data WHERE SUBSTR(region, 1, 1) = 'n'
-- expect: refused: SUBSTRING(region, 1, 1) is not answered here: write region LIKE 'A%', or CASE WHEN region LIKE 'A%' THEN 'A' … END to group by it.
