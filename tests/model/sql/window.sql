SELECT COUNT(*) OVER () FROM data
-- expect: refused: OVER is not answered here (line 1, column 17): windows are not; a GROUP BY gives a table.
