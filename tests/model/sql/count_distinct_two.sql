SELECT COUNT(DISTINCT sex, age) FROM data
-- expect: refused: COUNT(DISTINCT …) takes one declared column.
