SELECT COUNT(*) FROM data WHERE sex IS DISTINCT FROM 'F'
-- expect: refused: sex IS DISTINCT FROM 'F' is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on the declared columns.
