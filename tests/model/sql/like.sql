SELECT COUNT(*) FROM data WHERE region LIKE 'n%'
-- expect: region = north
