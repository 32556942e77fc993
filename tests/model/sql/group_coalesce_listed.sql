SELECT COALESCE(region, 'north') AS r, AVG(age) FROM data GROUP BY r HAVING r <> 'south'
-- expect: the mean of age, by region (north, east, south, abroad), where region ≠ south
