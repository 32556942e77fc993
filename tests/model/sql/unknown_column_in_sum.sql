SELECT SUM(payy) FROM data
-- expect: refused: unknown column 'payy' (line 1, column 12); did you mean 'pay'?
