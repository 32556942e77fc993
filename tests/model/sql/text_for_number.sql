SELECT COUNT(*) FROM data WHERE age = 'old'
-- expect: refused: age takes whole numbers, the question asks 'old'.
