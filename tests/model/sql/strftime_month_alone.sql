SELECT strftime(visit, '%m'), COUNT(*) FROM data GROUP BY 1
-- expect: refused: STRFTIME(visit, '%m') is not answered here: strftime(visit, '%Y-%m'), strftime(visit, '%Y') and date_trunc('month', visit) are.
