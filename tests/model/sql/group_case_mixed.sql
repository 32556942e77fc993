SELECT CASE WHEN age < 20 THEN 2 ELSE 'x' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: CASE WHEN age < 20 THEN 2 ELSE 'x' END is nothing to group by: its labels are texts, or they are numbers.
