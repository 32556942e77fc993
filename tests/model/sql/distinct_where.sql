SELECT DISTINCT sex FROM data WHERE age < 20
-- expect: refused: SELECT DISTINCT a, b FROM data lists the declared values, and takes nothing else.
