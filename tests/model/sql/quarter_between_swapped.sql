SELECT COUNT(*) FROM data WHERE date_trunc('quarter', visit) BETWEEN '2024-07-01' AND '2024-04-01'
-- expect: refused: a range of DATE_TRUNC('QUARTER', visit) goes from the lower end to the higher, not from 2024-07-01 to 2024-04-01.
