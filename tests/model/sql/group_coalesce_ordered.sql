SELECT COALESCE(pay, 0), COUNT(*) FROM data GROUP BY 1
-- expect: refused: COALESCE(pay, 0) is not answered here; missing values are asked for with pay IS NULL.
