SELECT AVG(region = 'north') FROM data
-- expect: the fraction of rows with region = north, among region ≠ unknown
