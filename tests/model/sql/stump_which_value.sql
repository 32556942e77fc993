SELECT STUMP(age, region) FROM data
-- expect: refused: region has 5 values; say which one is told from the others: value=….
