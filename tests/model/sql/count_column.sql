SELECT COUNT(region) FROM data
-- expect: region ≠ unknown
