SELECT COUNT(*) FROM data WHERE region IS NULL
-- expect: region = unknown
