SELECT CASE WHEN age < 20 THEN 'young' WHEN sex = 'F' THEN 'woman' ELSE 'man' END AS band, COUNT(*) FROM data GROUP BY band
-- expect: refused: CASE WHEN age < 20 THEN 'young' WHEN sex = 'F' THEN 'woman'  is about age and sex, and a CASE to group by is about one column. Ask for each of its groups, like COUNT(*) FILTER (WHERE …), or group by the columns themselves.
