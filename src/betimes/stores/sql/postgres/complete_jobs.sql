-- Move jobs that have simply succeeded to where ended jobs lie, and tell which were moved.
-- Whatever is stale, was asked to stop, is waited for or has a past stays, to be looked at one by one.
WITH done AS (
    DELETE FROM betimes_job AS job
    USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])
        AS completed (seq, fence, finished_at, result, forget_at)
    WHERE job.seq = ANY ($1::bigint[])
        AND job.seq = completed.seq
        AND job.fence = completed.fence
        AND job.status = 'running'
        AND job.cancel_requested = 0
        AND job.awaited = 0
        AND job.rare IS NULL
    RETURNING job.*, completed.finished_at, completed.result, completed.forget_at
)
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, 'completed', attempt, fence,
    started_at, finished_at, expires_at, 0, NULL, result, token, forget_at, gates, tenant
FROM done
RETURNING seq;
