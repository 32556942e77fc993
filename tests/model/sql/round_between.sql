SELECT COUNT(*) FROM data WHERE age BETWEEN ROUND(18) AND ROUND(41)
-- expect: age in 20–29 … 30–39; age >= 20 stands for age >= 18; age < 40 stands for age <= 41
