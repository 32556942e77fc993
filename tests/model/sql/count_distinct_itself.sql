SELECT sex, COUNT(DISTINCT sex) FROM data GROUP BY sex
-- expect: refused: COUNT(DISTINCT sex) is 1 or 0 in each group by sex.
