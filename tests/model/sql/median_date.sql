SELECT MEDIAN(visit) FROM data
-- expect: the 50% quantile of visit
