SELECT COUNT(*) FROM data WHERE salary < 20
-- expect: refused: unknown column 'salary' (line 1, column 33); the columns are age, sex, region, smoker, visit, pay, balance, order, eye colour.
