SELECT COUNT(*) FROM data WHERE pay >= 1000 AND pay < 2500.5
-- expect: pay = [1000, 2500.5)
