SELECT COUNT(*) FROM data WHERE smoker IS TRUE
-- expect: smoker = true
