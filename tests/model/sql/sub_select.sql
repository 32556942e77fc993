SELECT COUNT(*) FROM data WHERE age > (SELECT 30)
-- expect: refused: age > (SELECT 30) is not a condition that can be asked: WHERE compares declared columns with plain values. Sub-selects stand in FROM, or in the place of a number beside released values.
