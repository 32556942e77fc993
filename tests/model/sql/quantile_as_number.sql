SELECT COUNT(*) / (SELECT MEDIAN(age) FROM data) FROM data
-- expect: [all rows] / [the 50% quantile of age]
