SELECT COUNT(*) FROM data ORDER BY 1
-- expect: refused: one row needs no ORDER BY, LIMIT or OFFSET; they are for a GROUP BY.
