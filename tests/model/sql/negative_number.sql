SELECT COUNT(*) FROM data WHERE balance < -10
-- expect: balance = -20 to -11
