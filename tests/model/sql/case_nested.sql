SELECT SUM(CASE WHEN CASE WHEN sex = 'F' THEN TRUE END THEN 1 ELSE 0 END) FROM data
-- expect: refused: CASE WHEN sex = 'F' THEN TRUE END is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on the declared columns.
