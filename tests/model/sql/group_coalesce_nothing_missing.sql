SELECT COALESCE(sex, 'none'), COUNT(*) FROM data GROUP BY 1
-- expect: table of sex
