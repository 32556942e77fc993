SELECT COUNT(*) FROM data WHERE region = 'north' AND "eye colour" <> '((((((((((((((((((((((((((((((((((((((((((((((((((('
-- expect: eye colour ≠ ((((((((((((((((((((((((((((((((((((((((((((((((((( and region = north
