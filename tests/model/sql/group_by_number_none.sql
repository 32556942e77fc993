SELECT sex, COUNT(*) FROM data GROUP BY 3
-- expect: refused: there is no column 3; the statement has 2.
