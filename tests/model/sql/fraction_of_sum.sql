SELECT SUM(pay) / COUNT(*) FROM data
-- expect: refused: a fraction is a count of some rows / the count of all of them; for a mean ask AVG.
