SELECT COUNT(*) FROM data WHERE NOT region = 'north'
-- expect: region in {east, south, abroad}
