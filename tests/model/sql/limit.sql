SELECT COUNT(*) FROM data LIMIT 1
-- expect: refused: one row needs no ORDER BY, LIMIT or OFFSET; they are for a GROUP BY.
