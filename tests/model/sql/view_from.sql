SELECT COUNT(*) FROM (SELECT * FROM data WHERE sex = 'F') t WHERE t.region = 'north'
-- expect: region = north and sex = F
