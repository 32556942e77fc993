SELECT region, SUM(pay) / NULLIF(COUNT(*), 0) FROM data GROUP BY region
-- expect: [the sum of pay] / (nullif([all rows], 0)), by region
