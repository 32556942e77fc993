SELECT COALESCE(region, 0), COUNT(*) FROM data GROUP BY 1
-- expect: refused: COALESCE(region, 0) is not answered here: 0 is no value like those of region.
