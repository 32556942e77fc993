SELECT sex, MEDIAN(age), COUNT(*) FROM data WHERE smoker GROUP BY sex ORDER BY MEDIAN(age) DESC
-- expect: the 50% quantile of age where smoker = true; smoker = true, by sex, by MEDIAN(age) downwards
