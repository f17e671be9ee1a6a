-- Forget the logs of jobs (a JSON array of numbers).
DELETE FROM betimes_log WHERE seq IN (SELECT value FROM json_each(?));
