SELECT sex, AVG(age), AVG(pay) FROM data GROUP BY sex ORDER BY avg
-- expect: refused: ORDER BY avg could be any of 2 columns; give one a name with AS.
