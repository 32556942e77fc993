SELECT /* how many */ COUNT(*) FROM data /* all */ WHERE sex = 'F' -- women
-- expect: sex = F
