SELECT MATCHING(sex, 'F', 'M', region) FROM data
-- expect: pairs in a largest matching of sex = F with M on region
