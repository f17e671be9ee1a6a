-- Tell which of these jobs (a JSON array of numbers) still wait for another.
SELECT DISTINCT child FROM betimes_dependency WHERE child IN (SELECT value FROM json_each(?));
