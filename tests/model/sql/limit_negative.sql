SELECT sex, COUNT(*) FROM data GROUP BY sex LIMIT -1
-- expect: refused: LIMIT takes a whole number from 0.
