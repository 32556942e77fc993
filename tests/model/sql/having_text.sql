SELECT sex, COUNT(*) FROM data GROUP BY sex HAVING sex > 5
-- expect: refused: sex has no order, so sex > 5 has no meaning.
