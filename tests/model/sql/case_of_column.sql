SELECT SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END) FROM data
-- expect: refused: CASE WHEN sex = 'F' THEN age ELSE 0 END is not answered here; write SUM(age) FILTER (WHERE sex = 'F').
