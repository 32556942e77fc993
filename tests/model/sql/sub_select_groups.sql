SELECT t.sex, MAX(t.n) AS most FROM (SELECT region, sex, COUNT(*) AS n FROM data GROUP BY 1, 2) AS t WHERE region <> 'north' GROUP BY t.sex HAVING most > 5
-- expect: max of all rows of each region, by sex, of rows where region in {east, south, abroad}, where [max of all rows of each region] > 5
