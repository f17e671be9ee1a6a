-- Forget what jobs waited for (a JSON array of numbers).
DELETE FROM betimes_dependency WHERE child IN (SELECT value FROM json_each(?));
