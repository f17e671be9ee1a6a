-- Forget a job's oldest lines.
DELETE FROM betimes_log WHERE seq = ? AND number <= ?;
