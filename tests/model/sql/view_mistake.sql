WITH v AS (SELECT * FROM data WHERE region = 'nort') SELECT COUNT(*) FROM v
-- expect: refused: region has no value 'nort'; did you mean 'north'?
