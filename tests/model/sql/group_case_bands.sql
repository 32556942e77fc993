SELECT CASE WHEN age < 20 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*), AVG(balance) FROM data GROUP BY band ORDER BY band
-- expect: all rows; the mean of balance, by age (young, middle, old), by band upwards
