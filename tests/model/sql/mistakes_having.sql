SELECT sex, COUNT(*) FROM data GROUP BY sex HAVING COUNT(*) > 'a' ORDER BY 7
-- expect: refused: there are 2 mistakes. (1) 'a' is a text, where a number is needed. (2) there is no column 7; the statement has 2.
