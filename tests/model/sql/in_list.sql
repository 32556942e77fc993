SELECT COUNT(*) FROM data WHERE region IN ('north', 'east')
-- expect: region in {north, east}
