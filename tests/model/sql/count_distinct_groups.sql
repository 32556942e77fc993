SELECT sex, COUNT(DISTINCT age) AS bins, COUNT(*) FROM data WHERE smoker GROUP BY sex
-- expect: [how many values of age have a row where smoker = true]; smoker = true, by sex
