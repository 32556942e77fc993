SELECT COUNT(*) FROM data WHERE "eye colour" LIKE '%!''s%' ESCAPE '!'
-- expect: eye colour = it's green
