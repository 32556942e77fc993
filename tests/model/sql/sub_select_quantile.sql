SELECT * FROM (SELECT MEDIAN(age) AS m FROM data)
-- expect: the 50% quantile of age
