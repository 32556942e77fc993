SELECT COUNT(*) FROM data WHERE age < ROUND(300) AND age >= ROUND(-4)
-- expect: all rows; age < 100 stands for age < 300; age >= 0 stands for age >= -4
