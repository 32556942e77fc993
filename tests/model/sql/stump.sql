SELECT STUMP(age, smoker, TRUE) FROM data
-- expect: errors of the best threshold on age that tells smoker = true
