SELECT COUNT(*) FROM data WHERE region LIKE 'n!' ESCAPE '!'
-- expect: refused: the pattern of LIKE ends with its ESCAPE character.
