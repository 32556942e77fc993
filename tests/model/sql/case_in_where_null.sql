SELECT COUNT(*) FROM data WHERE CASE WHEN age < 20 THEN 'young' END IS NULL
-- expect: age in 20–29 … 90–99
