SELECT COUNT(*) FROM data WHERE CASE WHEN age < 20 THEN 'young' ELSE 'old' END < 'young'
-- expect: refused: CASE WHEN age < 20 THEN 'young' ELSE 'old' END has no order, so CASE WHEN age < 20 THEN 'young' ELSE 'old' END < 'young' has no meaning.
