SELECT COUNT(*) FROM data WHERE smoker IS NOT TRUE
-- expect: smoker ≠ true
