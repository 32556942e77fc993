SELECT COUNT(*) FROM data WHERE CASE WHEN age < 20 THEN 1 WHEN age < 60 THEN 2 ELSE 3 END >= 2
-- expect: age in 20–29 … 90–99
