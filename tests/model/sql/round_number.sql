SELECT COUNT(*) FROM data WHERE pay > ROUND(2400)
-- expect: pay = [2500.5, 10000); pay >= 2500.5 stands for pay > 2400
