-- Take away the rows of ended jobs (a JSON array of numbers).
DELETE FROM betimes_finished WHERE seq IN (SELECT value FROM json_each(?));
