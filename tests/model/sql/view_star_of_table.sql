SELECT COUNT(*) FROM (SELECT d.* FROM data d WHERE d.sex = 'F') t WHERE region = 'north'
-- expect: region = north and sex = F
