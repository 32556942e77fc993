SELECT TO_CHAR(visit, 'YYYY-MM'), COUNT(*) FROM data GROUP BY 1
-- expect: refused: CAST(visit AS TEXT) is not answered here: strftime(visit, '%Y-%m'), strftime(visit, '%Y') and date_trunc('month', visit) are.
