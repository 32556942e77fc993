SELECT COUNT(DISTINCT sex) FROM data
-- expect: refused: COUNT(DISTINCT …) is not answered; SELECT DISTINCT lists the declared values.
