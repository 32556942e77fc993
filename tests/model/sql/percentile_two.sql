SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age, sex) FROM data
-- expect: refused: QUANTILE_CONT(age, 0.9 ORDER BY age, sex) is not answered here; over released values there are + - * /, ABS, ROUND, FLOOR, CEIL, SQRT, LN, EXP, POWER, LEAST, GREATEST, COALESCE, NULLIF, CASE, comparisons, AND, OR, NOT, and ERROR, LOW, HIGH, CONFIDENCE.
