SELECT POWER(COUNT(*), 0.5) FROM data
-- expect: refused: POWER takes a whole power: a whole number from 1 to 8.
