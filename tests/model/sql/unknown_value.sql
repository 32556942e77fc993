SELECT COUNT(*) FROM data WHERE region = 'nort'
-- expect: refused: region has no value 'nort'; did you mean 'north'?
