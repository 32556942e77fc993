SELECT COUNT(*) FILTER (WHERE agee < 20) FROM data
-- expect: refused: unknown column 'agee' (line 1, column 31); did you mean 'age'?
