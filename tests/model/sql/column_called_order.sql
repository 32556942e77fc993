SELECT COUNT(*) FROM data WHERE order = 2
-- expect: order = 2
