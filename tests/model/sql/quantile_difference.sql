SELECT MEDIAN(age) FILTER (WHERE sex = 'F') - MEDIAN(age) FILTER (WHERE sex = 'M') FROM data
-- expect: [the 50% quantile of age where sex = F] - [the 50% quantile of age where sex = M]
