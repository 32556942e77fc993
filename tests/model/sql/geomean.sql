SELECT GEOMEAN(pay) FROM data
-- expect: refused: GEOMEAN(pay) is not answered here: an aggregate is of a declared column as it stands; MEDIAN(pay) is answered, and needs no logarithm.
