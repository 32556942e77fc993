SELECT COUNT(*) FROM data WHERE EXTRACT(QUARTER FROM visit) = 2
-- expect: refused: EXTRACT(QUARTER FROM visit) cannot be asked; year(t), hour(t), dayname(t) and month(t) can, where they are declared.
