SELECT SUM(IF(age < 20, 1e999, 0)) FROM data
-- expect: refused: numbers are below 1e300.
