SELECT COUNT(*) FROM data WHERE age IN (SELECT age FROM data)
-- expect: refused: age IN (SELECT age FROM data) is not a condition that can be asked: WHERE compares declared columns with plain values. Sub-selects stand in FROM, or in the place of a number beside released values.
