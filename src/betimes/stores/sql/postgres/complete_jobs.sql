-- Move jobs that have simply succeeded to where ended jobs lie, and tell which were moved; the numbers are in order.
-- Whatever is stale, was asked to stop, is waited for or has a past stays, to be looked at one by one; so does what
-- another transaction has locked.
WITH picked AS MATERIALIZED (
    SELECT seq FROM betimes_job WHERE seq = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
),
done AS (
    DELETE FROM betimes_job AS job
    WHERE job.seq = ANY (ARRAY(SELECT seq FROM picked))
        AND job.fence = ($2::bigint[])[width_bucket(job.seq, $1::bigint[])]
        AND job.status = 'running'
        AND job.cancel_requested = 0
        AND job.awaited = 0
        AND job.rare IS NULL
    RETURNING job.*, width_bucket(job.seq, $1::bigint[]) AS place
)
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, 'completed', attempt, fence,
    started_at, ($3::bigint[])[place], expires_at, 0, NULL, ($4::text[])[place], token, ($5::bigint[])[place], gates, tenant
FROM done
RETURNING seq;
