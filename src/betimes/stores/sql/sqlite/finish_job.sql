-- Copy a job that has ended to where ended jobs lie; what never changes is taken from its live row.
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at
)
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, ?, sort_key, ?, ?, ?,
    ?, ?, ?, ?, ?, ?, token, ?
FROM betimes_job
WHERE seq = ?;
