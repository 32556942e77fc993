SELECT * FROM (SELECT MEDIAN(age) AS m FROM data)
-- expect: refused: a quantile is asked by itself.
