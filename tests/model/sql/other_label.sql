SELECT COUNT(*) FROM data WHERE region = 'abroad'
-- expect: region = abroad
