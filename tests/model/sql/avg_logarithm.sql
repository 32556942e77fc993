SELECT AVG(LN(pay)) FROM data
-- expect: refused: AVG(LN(pay)) is not answered here: an aggregate is of a declared column as it stands; MEDIAN(pay) is answered, and needs no logarithm.
