SELECT COUNT(*) FROM data WHERE CASE WHEN age < 20 THEN 'young' WHEN age < 60 THEN 'middle' END <> 'young'
-- expect: age in 20–29 … 50–59
