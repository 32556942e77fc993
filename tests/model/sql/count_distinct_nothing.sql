SELECT COUNT(DISTINCT) FROM data
-- expect: refused: COUNT(DISTINCT …) takes one declared column.
