SELECT AVG(CASE WHEN sex = 'F' THEN pay ELSE 0 END) FROM data
-- expect: refused: AVG(CASE WHEN sex = 'F' THEN pay ELSE 0 END) is not answered here, as pay has no number in some rows: write SUM(pay) FILTER (WHERE sex = 'F') over the rows that are meant, like COUNT(pay) or COUNT(*).
