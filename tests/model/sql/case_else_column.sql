SELECT SUM(CASE WHEN sex = 'F' THEN age ELSE pay END) FROM data
-- expect: refused: SUM(CASE WHEN sex = 'F' THEN age ELSE pay END) is not answered here: what ELSE gives would count too; leave out ELSE, or write ELSE 0.
