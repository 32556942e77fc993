SELECT COUNT(*) FROM data WHERE region LIKE 'N%'
-- expect: no row
