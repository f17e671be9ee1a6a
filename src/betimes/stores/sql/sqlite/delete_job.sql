-- Take away the live rows of jobs that have ended (a JSON array of numbers).
DELETE FROM betimes_job WHERE seq IN (SELECT value FROM json_each(?));
