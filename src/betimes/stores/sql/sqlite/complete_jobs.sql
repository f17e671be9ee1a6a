-- Copy jobs that have simply succeeded to where ended jobs lie.
-- Whatever is stale, was asked to stop, is waited for or has a past stays, to be looked at one by one.
-- The driver counts the rows of a statement only if it begins with INSERT: so the table of what is new stands inside.
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
WITH completed (seq, fence, finished_at, result, forget_at) AS (
    VALUES (?, ?, ?, ?, ?)
)
SELECT job.seq, job.id, job.task, job.queue, job.lane, job.priority, job.options, job.payload, job.submitted_at,
    job.run_at, job.sort_key, 'completed', job.attempt, job.fence, job.started_at, completed.finished_at,
    job.expires_at, 0, NULL, completed.result, job.token, completed.forget_at, job.gates, job.tenant
FROM completed CROSS JOIN betimes_job AS job ON job.seq = completed.seq
WHERE job.fence = completed.fence
    AND job.status = 'running'
    AND job.cancel_requested = 0
    AND job.awaited = 0
    AND job.rare IS NULL;
