SELECT COUNT(*) FROM data WHERE sex
-- expect: refused: sex is not true or false; compare it with a value.
