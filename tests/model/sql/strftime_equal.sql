SELECT COUNT(*) FROM data WHERE strftime(visit, '%Y-%m') = '2024-03'
-- expect: visit = 2024-03
