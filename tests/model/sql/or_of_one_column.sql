SELECT COUNT(*) FROM data WHERE age < 20 OR age >= 80
-- expect: age in {0–9, 10–19, 80–89, 90–99}
