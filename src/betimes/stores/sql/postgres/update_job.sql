-- Write what may change of live jobs.
UPDATE betimes_job AS job
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
FROM unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::integer[], $6::bigint[], $7::text[], $8::bigint[],
    $9::bigint[], $10::text[], $11::integer[], $12::text[]
) AS changed (
    seq, status, run_at, sort_key, attempt, fence, worker, started_at, expires_at, parked, cancel_requested, rare
)
WHERE job.seq = ANY ($1::bigint[]) AND job.seq = changed.seq;
