-- Write the starts of attempts.
UPDATE betimes_job AS job
SET status = 'running',
    attempt = claimed.attempt,
    fence = claimed.fence,
    worker = claimed.worker,
    started_at = claimed.started_at
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[], $5::bigint[])
    AS claimed (seq, attempt, fence, worker, started_at)
WHERE job.seq = ANY ($1::bigint[]) AND job.seq = claimed.seq;
