SELECT SUM(CASE sex WHEN 'F' THEN smoker ELSE 0 END) FROM data
-- expect: sex = F and smoker = true
