SELECT CASE WHEN TRUE THEN 'x' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: CASE WHEN TRUE THEN 'x' END is about no column, and a CASE to group by is about one column. Ask for each of its groups, like COUNT(*) FILTER (WHERE …), or group by the columns themselves.
