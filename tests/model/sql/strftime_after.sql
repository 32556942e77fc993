SELECT COUNT(*) FROM data WHERE strftime(visit, '%Y-%m') > '2024-03'
-- expect: visit in 2024-04 … 2024-12
