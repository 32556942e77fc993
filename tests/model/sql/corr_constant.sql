SELECT CORR(age, balance) FROM data WHERE age < 10
-- expect: refused: every row that meets the condition has the same age, 4.5, which is correlated with nothing.
