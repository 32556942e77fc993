SELECT sex, COUNT(*) AS n, age FROM data WHERE region = 'north' GROUP BY age, sex
-- expect: table of age, sex where region = north
