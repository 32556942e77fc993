SELECT COUNT(*) FROM data WHERE strftime(visit, '%Y') = '2023'
-- expect: refused: STRFTIME(visit, '%Y') is one of 2024; the question asks '2023'.
