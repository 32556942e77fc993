SELECT MEDIAN(age) + 1 FROM data
-- expect: [the 50% quantile of age] + 1
