-- Copy jobs that have ended to where ended jobs lie; what never changes is taken from their live rows.
WITH ended (
    seq, run_at, sort_key, status, attempt, fence, started_at, finished_at, expires_at, cancel_requested, rare, result,
    forget_at
) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
SELECT job.seq, job.id, job.task, job.queue, job.lane, job.priority, job.options, job.payload, job.submitted_at,
    ended.run_at, ended.sort_key, ended.status, ended.attempt, ended.fence, ended.started_at, ended.finished_at,
    ended.expires_at, ended.cancel_requested, ended.rare, ended.result, job.token, ended.forget_at, job.gates, job.tenant
FROM ended CROSS JOIN betimes_job AS job ON job.seq = ended.seq;
