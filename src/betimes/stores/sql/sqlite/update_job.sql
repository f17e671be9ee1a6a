-- Write what may change of live jobs.
WITH changed (
    seq, status, run_at, sort_key, attempt, fence, worker, started_at, expires_at, parked, cancel_requested, rare
) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE betimes_job
SET status = changed.status,
    run_at = changed.run_at,
    sort_key = changed.sort_key,
    attempt = changed.attempt,
    fence = changed.fence,
    worker = changed.worker,
    started_at = changed.started_at,
    expires_at = changed.expires_at,
    parked = changed.parked,
    cancel_requested = changed.cancel_requested,
    rare = changed.rare
FROM changed
WHERE betimes_job.seq = changed.seq;
