SELECT COUNT(*) FROM data WHERE visit BETWEEN '2024-05-01' AND '2024-04-30'
-- expect: refused: a range of visit goes from the lower end to the higher, not from 2024-05-01 to 2024-04-30.
