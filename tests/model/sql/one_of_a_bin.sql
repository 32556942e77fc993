SELECT COUNT(*) FROM data WHERE age = 25
-- expect: refused: age = 25 lies in the bin 20–29; ask for whole bins.
