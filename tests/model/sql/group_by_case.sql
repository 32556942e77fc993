SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS g, COUNT(*) FROM data GROUP BY g
-- expect: refused: CASE WHEN age < 50 THEN 'young' ELSE 'old' END is nothing to group by: groups are declared columns, or wider bins of them. Ask for a value of each side, like COUNT(*) FILTER (WHERE …), or group by the column itself.
