-- Write the starts of attempts.
WITH claimed (seq, attempt, fence, worker, started_at) AS (
    VALUES (?, ?, ?, ?, ?)
)
UPDATE betimes_job
SET status = 'running',
    attempt = claimed.attempt,
    fence = claimed.fence,
    worker = claimed.worker,
    started_at = claimed.started_at
FROM claimed
WHERE betimes_job.seq = claimed.seq;
