SELECT COUNT(*) FROM (SELECT sex FROM data WHERE region = 'north') t WHERE age < 50
-- expect: refused: age is not among the columns of what stands in FROM.
