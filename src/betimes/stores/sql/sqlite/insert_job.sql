-- Insert a new live job.
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    worker, started_at, expires_at, unmet, parked, cancel_requested, rare, token, awaited
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, NULL, NULL, ?, ?, NULL, 0, ?, ?, 0);
