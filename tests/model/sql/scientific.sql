SELECT COUNT(*) FROM data WHERE pay >= 1e3
-- expect: pay in [1000, 2500.5) … [2500.5, 10000)
