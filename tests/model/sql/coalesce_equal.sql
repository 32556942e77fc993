SELECT COUNT(*) FROM data WHERE COALESCE(region, 'none') = 'none'
-- expect: region = unknown
