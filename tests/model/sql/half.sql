SELECT COUNT(*) FROM data WHERE age < 19.5
-- expect: refused: age takes whole numbers, the question asks 19.5.
