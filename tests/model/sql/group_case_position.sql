SELECT CASE region WHEN 'north' THEN 'cold' WHEN 'south' THEN 'warm' ELSE 'other' END, COUNT(*) FROM data GROUP BY 1
-- expect: table of region (cold, warm, other)
