-- Read live jobs by their numbers (a JSON array).
SELECT record FROM betimes_live WHERE seq IN (SELECT value FROM json_each(?));
