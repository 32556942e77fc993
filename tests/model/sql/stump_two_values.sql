SELECT stump(age, sex) AS errors FROM data
-- expect: errors of the best threshold on age that tells sex = M
