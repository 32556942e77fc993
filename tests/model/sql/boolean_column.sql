SELECT COUNT(*) FROM data WHERE smoker
-- expect: smoker = true
