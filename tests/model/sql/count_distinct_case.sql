SELECT COUNT(DISTINCT CASE WHEN sex = 'F' THEN age END) FROM data
-- expect: [how many values of age have a row where sex = F]
