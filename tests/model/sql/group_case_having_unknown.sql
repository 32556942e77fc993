SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, COUNT(*) AS n FROM data GROUP BY band HAVING band = 'yung'
-- expect: refused: band is one of young, old; the question asks 'yung'.
