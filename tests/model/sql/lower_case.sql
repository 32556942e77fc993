select count(*) from data where SEX = 'F'
-- expect: sex = F
