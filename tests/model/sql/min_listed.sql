SELECT MIN(region) FROM data
-- expect: refused: MIN(region) is decided by single rows, so it is not answered; SELECT DISTINCT region FROM data lists the declared values.
