SELECT date_trunc('week', visit), COUNT(*) FROM data GROUP BY 1
-- expect: refused: DATE_TRUNC('WEEK', visit) cannot be asked: visit is declared by month, so that what fits is month, quarter, year.
