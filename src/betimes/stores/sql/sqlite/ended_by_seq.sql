-- Read ended jobs by their numbers (a JSON array).
SELECT record FROM betimes_ended WHERE seq IN (SELECT value FROM json_each(?));
