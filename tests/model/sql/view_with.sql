WITH women AS (SELECT * FROM data WHERE sex = 'F') SELECT region, COUNT(*) FROM women WHERE smoker GROUP BY region
-- expect: table of region where sex = F and smoker = true
