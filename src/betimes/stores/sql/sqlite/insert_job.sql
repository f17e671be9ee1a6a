-- Insert new live jobs.
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, expires_at, rare,
    token, gates, tenant, attempt, fence, cancel_requested, awaited
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0);
