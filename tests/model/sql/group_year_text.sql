SELECT YEAR(age), COUNT(*) FROM data GROUP BY 1
-- expect: refused: YEAR(age) cannot be asked: age is declared as integer.
