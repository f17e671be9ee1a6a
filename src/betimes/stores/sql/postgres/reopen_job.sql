-- Copy an ended job back among the live ones; what changes is written next.
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    worker, started_at, expires_at, parked, cancel_requested, rare, token, awaited, gates, tenant
)
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    NULL, started_at, expires_at, NULL, cancel_requested, rare, token, 0, gates, tenant
FROM betimes_finished
WHERE seq = $1::bigint;
