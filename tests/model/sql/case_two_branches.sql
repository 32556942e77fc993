SELECT SUM(CASE WHEN sex = 'F' THEN age WHEN region = 'north' THEN 1 ELSE 0 END) FROM data
-- expect: refused: SUM(CASE WHEN sex = 'F' THEN age WHEN region = 'north' THEN  is not answered here: a CASE inside an aggregate has one WHEN. Ask for each with FILTER (WHERE …), and add them up.
