SELECT COUNT(*) FROM data WHERE FLOOR(age / 20) * 20 = 45
-- expect: refused: age is one of 0, 20, 40, 60, 80; the question asks 45.
