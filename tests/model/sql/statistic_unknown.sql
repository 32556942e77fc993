SELECT STATISTIC('of nobody') FROM data
-- expect: refused: the owner has registered no statistic called 'of nobody'.
