SELECT region, CASE region WHEN 'north' THEN COUNT(*) ELSE 0 END FROM data GROUP BY region
-- expect: case when region = north then [all rows] else 0 end, by region
