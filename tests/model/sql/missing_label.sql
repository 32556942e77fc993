SELECT COUNT(*) FROM data WHERE region = 'unknown'
-- expect: region = unknown
