SELECT MAX(m) - MIN(m) FROM (SELECT region, MEDIAN(age) AS m FROM data GROUP BY region)
-- expect: [max of the 50% quantile of age of each region] - [min of the 50% quantile of age of each region]
