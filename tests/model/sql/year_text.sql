SELECT COUNT(*) FROM data WHERE YEAR(visit) = 'x'
-- expect: refused: YEAR(visit) is one of 2024; the question asks 'x'.
