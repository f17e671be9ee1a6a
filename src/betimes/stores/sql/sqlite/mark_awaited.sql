-- Mark live jobs (a JSON array of numbers) as ones that others wait for; only such jobs pay for looking.
UPDATE betimes_job SET awaited = 1 WHERE seq IN (SELECT value FROM json_each(?));
