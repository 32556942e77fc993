SELECT COUNT(*) FROM data WHERE COALESCE(pay, 0) < 1000
-- expect: refused: COALESCE(pay, 0) is not answered here; missing values are asked for with pay IS NULL.
