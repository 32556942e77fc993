SELECT sex, COUNT(*), ERROR(COUNT(*)), LOW(COUNT(*)), HIGH(AVG(age)), CONFIDENCE() FROM data GROUP BY sex
-- expect: all rows; error([all rows]); low([all rows]); high([the mean of age]); confidence(), by sex
