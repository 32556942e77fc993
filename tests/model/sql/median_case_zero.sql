SELECT MEDIAN(CASE WHEN sex = 'F' THEN age ELSE 0 END) FROM data
-- expect: refused: MEDIAN(CASE WHEN sex = 'F' THEN age ELSE 0 END) is not answered here: what ELSE gives would count too; leave out ELSE.
