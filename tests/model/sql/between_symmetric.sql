SELECT COUNT(*) FROM data WHERE age BETWEEN SYMMETRIC 39 AND 20
-- expect: refused: (age BETWEEN 39 AND 20 OR age BETWEEN 20 AND 39) is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on the declared columns.
