SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) = '2024-05-01'
-- expect: refused: DATE_TRUNC('QUARTER', visit) is one of 2024-01-01, 2024-04-01, 2024-07-01, 2024-10-01; the question asks '2024-05-01'.
