SELECT COUNT(*) FROM data WHERE FLOOR(age / 20) * 20 = 40
-- expect: age in 40–49 … 50–59
