SELECT DISTINCT sex, COUNT(*) FROM data GROUP BY sex
-- expect: refused: SELECT DISTINCT a, b FROM data lists the declared values, and takes nothing else.
