SELECT COUNT(*) FROM data WHERE (((((((((((((((((((((((((((((((((((((((((sex = 'F')))))))))))))))))))))))))))))))))))))))))
-- expect: refused: a statement nests at most 40 parentheses.
