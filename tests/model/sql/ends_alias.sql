SELECT sex, COUNT(*) AS n, ERROR(n), CONFIDENCE(n) FROM data GROUP BY sex
-- expect: all rows; error([all rows]); confidence([all rows]), by sex
