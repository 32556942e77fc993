SELECT DISTINCT sex, smoker FROM data ORDER BY smoker DESC LIMIT 3
-- expect: the declared values of sex, smoker, by smoker downwards, rows 1 to 3
