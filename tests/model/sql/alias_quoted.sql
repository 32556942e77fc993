SELECT sex AS "the sex", COUNT(*) AS "how many" FROM data GROUP BY sex ORDER BY "how many"
-- expect: table of sex, by how many upwards
