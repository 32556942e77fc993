SELECT COUNT(DISTINCT region) FROM data
-- expect: refused: region has values beyond those that are listed, so they cannot be counted; SELECT DISTINCT lists the declared ones.
