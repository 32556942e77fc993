SELECT COUNT(DISTINCT sex) FROM data
-- expect: [how many values of sex have a row]
