SELECT COUNT(*) FROM data WHERE age NOT BETWEEN 40 AND 39
-- expect: refused: a range of age goes from the lower end to the higher, not from 40 to 39.
