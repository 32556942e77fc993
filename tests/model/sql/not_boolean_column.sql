SELECT COUNT(*) FROM data WHERE NOT smoker
-- expect: smoker = false
