SELECT AVG(CASE WHEN sex = 'F' THEN age ELSE 0 END) FROM data
-- expect: [the sum of age where sex = F] / [all rows]
