SELECT COUNT(*) FROM data WHERE visit > '2024-02-29'::DATE
-- expect: visit in 2024-03 … 2024-12
