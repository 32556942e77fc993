SELECT CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 0 END FROM data
-- expect: refused: CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 0 END gives texts and numbers; a column has one of them.
