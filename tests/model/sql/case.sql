SELECT COUNT(*) FROM data WHERE CASE WHEN sex = 'F' THEN TRUE END
-- expect: refused: CASE WHEN sex = 'F' THEN TRUE END is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on the declared columns.
