SELECT sex, COUNT(*) FROM data GROUP BY sex HAVING COUNT(*) > 5
-- expect: refused: HAVING is not answered here (line 1, column 45): it would choose groups by their noisy counts; choose from the released table, which is free.
