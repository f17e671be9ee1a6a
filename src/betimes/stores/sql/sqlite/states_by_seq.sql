-- Read, of live jobs by their numbers (a JSON array), only what may change.
SELECT state AS record FROM betimes_live WHERE seq IN (SELECT value FROM json_each(?));
