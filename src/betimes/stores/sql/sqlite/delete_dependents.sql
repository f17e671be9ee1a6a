-- Forget who waited for jobs (a JSON array of numbers).
DELETE FROM betimes_dependency WHERE parent IN (SELECT value FROM json_each(?));
