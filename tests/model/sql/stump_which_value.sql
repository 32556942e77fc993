SELECT STUMP(age, region) FROM data
-- expect: refused: region has 5 values; name the one that is told from the others, like STUMP(age, region, 'north').
