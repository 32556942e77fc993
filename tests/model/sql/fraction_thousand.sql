SELECT 1000 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) FROM data
-- expect: refused: a value may be multiplied by 1.0, and a fraction by 100.
