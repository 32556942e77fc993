SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, CASE WHEN COUNT(*) > 10 AND COUNT(*) < 20 THEN 'few' ELSE 'many' END AS size FROM data GROUP BY band
-- expect: case when ([all rows] > 10) and ([all rows] < 20) then 'few' else 'many' end, by band
