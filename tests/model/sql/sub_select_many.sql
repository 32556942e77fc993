SELECT COUNT(*) - (SELECT sex, COUNT(*) FROM data GROUP BY sex) FROM data
-- expect: refused: a sub-select in the place of a number has one row and one value.
