SELECT COUNT(*) FROM data WHERE CAST(age AS VARCHAR) = '5'
-- expect: refused: CAST(age AS TEXT) is not a declared column by its plain name.
