SELECT CASE WHEN pay < 1000 THEN 'low' WHEN pay >= 1000 THEN 'high' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: table of pay (low, high, –)
