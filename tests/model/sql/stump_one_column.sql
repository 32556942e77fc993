SELECT STUMP(age) FROM data
-- expect: refused: STUMP(age) is not answered here; write STUMP(age, ill), or STUMP(age, ward, 'east').
