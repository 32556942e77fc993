SELECT 100 * COUNT(*) FROM data
-- expect: refused: a value may be multiplied by 1.0, and a fraction by 100.
