SELECT COUNT(*) FROM data WHERE age LIKE '2%'
-- expect: refused: LIKE is for listed text; age takes 0 to 99.
