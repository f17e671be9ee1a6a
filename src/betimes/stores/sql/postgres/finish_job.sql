-- Copy jobs that have ended to where ended jobs lie; what never changes is taken from their live rows.
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
SELECT job.seq, job.id, job.task, job.queue, job.lane, job.priority, job.options, job.payload, job.submitted_at,
    ended.run_at, ended.sort_key, ended.status, ended.attempt, ended.fence, ended.started_at, ended.finished_at,
    ended.expires_at, ended.cancel_requested, ended.rare, ended.result, job.token, ended.forget_at, job.gates, job.tenant
FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::integer[], $11::text[], $12::text[], $13::bigint[]
) AS ended (
    seq, run_at, sort_key, status, attempt, fence, started_at, finished_at, expires_at, cancel_requested, rare, result,
    forget_at
)
JOIN betimes_job AS job ON job.seq = ended.seq
WHERE job.seq = ANY ($1::bigint[]);
