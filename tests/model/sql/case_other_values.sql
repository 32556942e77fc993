SELECT SUM(CASE WHEN sex = 'F' THEN 2 ELSE 0 END) FROM data
-- expect: refused: CASE WHEN sex = 'F' THEN 2 ELSE 0 END is not answered here; write CASE WHEN … THEN 1 ELSE 0 END.
