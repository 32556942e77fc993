SELECT DISTINCT sex FROM data
-- expect: the declared values of sex
