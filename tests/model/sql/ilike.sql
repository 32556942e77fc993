SELECT COUNT(*) FROM data WHERE region ILIKE 'N%'
-- expect: region = north
