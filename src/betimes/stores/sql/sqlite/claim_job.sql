-- Write the start of an attempt.
UPDATE betimes_job SET status = 'running', attempt = ?, fence = ?, worker = ?, started_at = ? WHERE seq = ?;
