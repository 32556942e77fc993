SELECT COUNT(*) FROM data WHERE region < 'north'
-- expect: refused: region has no order, so region < 'north' has no meaning.
