SELECT COUNT(*) FROM data WHERE region NOT LIKE '%th'
-- expect: region = east
