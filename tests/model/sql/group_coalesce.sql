SELECT COALESCE(region, 'none') AS r, COUNT(*) FROM data GROUP BY r
-- expect: table of region (north, east, south, abroad, none)
