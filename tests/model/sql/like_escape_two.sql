SELECT COUNT(*) FROM data WHERE region LIKE 'n%' ESCAPE '!!'
-- expect: refused: ESCAPE takes one character, like ESCAPE '!'.
