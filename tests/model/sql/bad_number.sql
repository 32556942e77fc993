SELECT COUNT(*) FROM data WHERE age < 1e
-- expect: refused: 1e is not a number that can be read.
