SELECT region, CASE WHEN COUNT(*) > 100 THEN 'many' WHEN COUNT(*) > 10 THEN 'some' ELSE 'few' END AS size FROM data GROUP BY region
-- expect: case when [all rows] > 100 then 'many' when [all rows] > 10 then 'some' else 'few' end, by region
