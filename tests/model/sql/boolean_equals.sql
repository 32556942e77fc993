SELECT COUNT(*) FROM data WHERE smoker = FALSE
-- expect: smoker = false
