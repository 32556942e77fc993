WITH a AS (SELECT age, sex FROM data WHERE region = 'north'), b AS (SELECT * FROM a WHERE sex = 'F') SELECT AVG(b.age) FROM b
-- expect: the mean of age where region = north and sex = F
