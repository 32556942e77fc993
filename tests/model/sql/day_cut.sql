SELECT COUNT(*) FROM data WHERE date_trunc('day', visit) = '2024-04-01'
-- expect: refused: DATE_TRUNC('DAY', visit) cannot be asked: visit is declared by month, so that what fits is month, quarter, year.
