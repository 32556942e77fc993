SELECT dayofweek(visit), COUNT(*) FROM data GROUP BY 1
-- expect: refused: DAYOFWEEK(visit) cannot be asked, and dayname(visit), which is Monday to Sunday, is not declared: the owner can declare an attribute with kind = "weekday" and of = "visit".
