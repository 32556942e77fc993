SELECT sex s, COUNT(*) n FROM data GROUP BY s ORDER BY n
-- expect: table of sex, by n upwards
