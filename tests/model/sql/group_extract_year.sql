SELECT EXTRACT(YEAR FROM visit), AVG(age) FROM data GROUP BY EXTRACT(YEAR FROM visit)
-- expect: the mean of age, by visit by year
