-- A made-up table to try the server with; put your own in its place.
CREATE TABLE people AS
SELECT CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex,
       18 + floor(60 * random())::int AS age,
       random() < 0.2 AS smoker
FROM generate_series(1, 10000);
