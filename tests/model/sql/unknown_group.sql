SELECT regoin, COUNT(*) FROM data GROUP BY regoin
-- expect: refused: unknown column 'regoin' (line 1, column 44); did you mean 'region'?
