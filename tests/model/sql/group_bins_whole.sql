SELECT age // 20 * 20, COUNT(*) FROM data GROUP BY 1 ORDER BY 1 DESC
-- expect: table of age by 20, by age downwards
