SELECT COUNT(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM data
-- expect: refused: COUNT(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) is not answered here: what ELSE gives would count too; leave out ELSE.
