SELECT COUNT(*) + 1e308 FROM data
-- expect: refused: numbers are below 1e300.
