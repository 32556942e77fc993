SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) IS NULL
-- expect: no row
