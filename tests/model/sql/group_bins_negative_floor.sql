SELECT FLOOR(balance / 20) * 20, COUNT(*) FROM data GROUP BY 1
-- expect: table of balance by 20
