SELECT COUNT(*) FROM data WHERE region IS NOT NULL
-- expect: region ≠ unknown
