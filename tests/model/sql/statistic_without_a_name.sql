SELECT STATISTIC() FROM data
-- expect: refused: STATISTIC is given a name, like STATISTIC('fullest ward').
