SELECT LOW(COUNT(*), 1) FROM data
-- expect: refused: LOW takes one value, like LOW(COUNT(*)).
