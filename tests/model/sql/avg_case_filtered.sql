SELECT AVG(CASE WHEN sex = 'F' THEN age ELSE 0 END) FILTER (WHERE smoker) FROM data
-- expect: [the sum of age where sex = F and smoker = true] / [smoker = true]
