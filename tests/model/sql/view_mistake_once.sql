SELECT n FROM (SELECT n FROM (SELECT COUNT(*) AS n FROM data WHERE region = 'nort') t) u
-- expect: refused: region has no value 'nort'; did you mean 'north'?
