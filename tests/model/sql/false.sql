SELECT COUNT(*) FROM data WHERE FALSE
-- expect: no row
