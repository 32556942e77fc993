SELECT COUNT(*) FROM data WHERE pay > 20000
-- expect: refused: pay takes 0 to below 10000, the question asks 20000.
