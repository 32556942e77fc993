SELECT dayofweek(visit), COUNT(*) FROM data GROUP BY 1
-- expect: refused: DAYOFWEEK(visit) cannot be asked; ask dayname(visit), which is Monday to Sunday.
