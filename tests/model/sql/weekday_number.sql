SELECT COUNT(*) FROM data WHERE weekday(visit) = 1
-- expect: refused: WEEKDAY(visit) cannot be asked; ask dayname(visit), which is Monday to Sunday.
