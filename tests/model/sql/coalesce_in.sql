SELECT COUNT(*) FROM data WHERE COALESCE(smoker, FALSE) = FALSE
-- expect: smoker ≠ true
