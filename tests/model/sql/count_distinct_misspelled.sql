SELECT COUNT(DISTINCT regoin) FROM data
-- expect: refused: unknown column 'regoin' (line 1, column 23); did you mean 'region'?
