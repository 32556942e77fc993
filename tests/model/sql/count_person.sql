SELECT COUNT(person_id) FROM data
-- expect: refused: unknown column 'person_id' (line 1, column 14); the columns are age, sex, region, smoker, visit, pay, balance, order, eye colour. COUNT(*) counts rows, which are persons where each has one row; how many persons there are otherwise is not answered.
