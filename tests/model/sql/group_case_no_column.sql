SELECT CASE WHEN TRUE THEN 'x' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: CASE WHEN TRUE THEN 'x' END is the same for every row, so there is nothing to group by.
