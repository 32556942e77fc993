SELECT COUNT(*) FROM data WHERE YEAR(visit) = 2022
-- expect: refused: YEAR(visit) is one of 2024; the question asks 2022.
