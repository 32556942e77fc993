SELECT CASE WHEN age < 20 THEN '' ELSE 'x' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: the label of a group is a text of 1 to 128 printable characters.
