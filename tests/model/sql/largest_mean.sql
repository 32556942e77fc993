SELECT LARGEST_MEAN(age, region, sex, 0.05) FROM data
-- expect: largest mean of age by region, sex, times the smallest group (1/20 of all rows)
