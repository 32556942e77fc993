SELECT COUNT(*) FILTER (WHERE age < 20) / COUNT(*) FILTER (WHERE sex = 'F') FROM data
-- expect: refused: the rows that a fraction counts above are among those that it counts below.
