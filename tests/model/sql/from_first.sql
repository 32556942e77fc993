FROM data SELECT COUNT(*) WHERE sex = 'F'
-- expect: sex = F
