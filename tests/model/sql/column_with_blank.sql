SELECT COUNT(*) FROM data WHERE "eye colour" = 'it''s green'
-- expect: eye colour = it's green
