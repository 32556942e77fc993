SELECT region FROM data GROUP BY region ORDER BY COUNT(*) FILTER (WHERE smoker) / COUNT(*) DESC, 1
-- expect: region, by the fraction of rows with smoker = true downwards, by region upwards
