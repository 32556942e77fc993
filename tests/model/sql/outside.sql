SELECT COUNT(*) FROM data WHERE age < 120
-- expect: refused: age takes 0 to 99, the question asks 120.
