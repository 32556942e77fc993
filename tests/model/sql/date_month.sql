SELECT COUNT(*) FROM data WHERE visit = '2024-02'
-- expect: visit = 2024-02
