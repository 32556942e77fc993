SELECT COUNT(*) FROM data WHERE weekday(visit) = 1
-- expect: refused: WEEKDAY(visit) cannot be asked, and dayname(visit), which is Monday to Sunday, is not declared: the owner can declare an attribute with kind = "weekday" and of = "visit".
