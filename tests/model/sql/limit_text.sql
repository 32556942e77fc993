SELECT sex, COUNT(*) FROM data GROUP BY sex LIMIT 'a'
-- expect: refused: LIMIT takes a whole number from 0.
