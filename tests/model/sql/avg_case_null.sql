SELECT AVG(CASE WHEN sex = 'F' THEN age ELSE NULL END) FROM data WHERE smoker
-- expect: the mean of age where sex = F and smoker = true
