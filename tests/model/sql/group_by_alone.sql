SELECT sex FROM data GROUP BY sex
-- expect: the declared values of sex
