SELECT COUNT(*) FROM data WHERE visit <= '2024-02-28'
-- expect: refused: visit cannot be cut after 2024-02-28: the nearest bins end with 2024-01-31 and 2024-02-29. ROUND('2024-02-28') takes the nearest.
