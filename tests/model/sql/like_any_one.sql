SELECT COUNT(*) FROM data WHERE region LIKE '_o%'
-- expect: region in {north, south}
