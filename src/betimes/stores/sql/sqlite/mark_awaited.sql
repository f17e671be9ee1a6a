-- Mark a live job as one that others wait for; only such jobs pay for looking.
UPDATE betimes_job SET awaited = 1 WHERE seq = ?;
