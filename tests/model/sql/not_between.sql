SELECT COUNT(*) FROM data WHERE age NOT BETWEEN 20 AND 39
-- expect: age in {0–9, 10–19, 40–49, 50–59, 60–69, 70–79, …}
