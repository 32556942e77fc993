SELECT sex, COUNT(*) > 5 AS many FROM data GROUP BY sex
-- expect: case when [all rows] > 5 then 'true' when not ([all rows] > 5) then 'false' else null end, by sex
