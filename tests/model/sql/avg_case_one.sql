SELECT AVG(CASE WHEN sex = 'F' THEN 1 END) FROM data
-- expect: refused: the mean of 1 is 1; for a share, write ELSE 0.
