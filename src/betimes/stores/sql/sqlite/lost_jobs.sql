-- Read jobs of known tasks (a JSON array) that a worker holds.
SELECT record FROM betimes_live
WHERE worker IS NOT NULL AND worker = ? AND task IN (SELECT value FROM json_each(?))
ORDER BY seq
LIMIT ?;
