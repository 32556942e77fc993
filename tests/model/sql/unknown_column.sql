SELECT COUNT(*)
FROM data
WHERE sex = 'F'
  AND agee < 20
-- expect: refused: unknown column 'agee' (line 4, column 7); did you mean 'age'?
