SELECT region, COUNT(*) FROM data GROUP BY region HAVING region <> 'north' OR COUNT(*) BETWEEN 5 AND 10
-- expect: table of region, where (region in {east, south, abroad}) or ((5 <= [all rows]) and ([all rows] <= 10))
