SELECT COUNT(*) FROM data WHERE COALESCE(region, 'none') <> 'north'
-- expect: region ≠ north
