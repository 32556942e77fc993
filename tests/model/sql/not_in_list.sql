SELECT COUNT(*) FROM data WHERE region NOT IN ('north', 'east')
-- expect: region in {south, abroad}
