SELECT STUMP(smoker, age) FROM data
-- expect: refused: smoker has no order, so it has no thresholds: the ordered attribute comes first.
