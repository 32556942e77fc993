SELECT AVG(CASE WHEN region = 'north' THEN 1.0 ELSE 0 END) FROM data
-- expect: the fraction of rows with region = north
