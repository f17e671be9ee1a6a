-- Write the starts of attempts; the numbers are in order.
UPDATE betimes_job AS job
SET status = 'running',
    (attempt, fence, worker, started_at) = (
        SELECT ($2::integer[])[place], ($3::bigint[])[place], ($4::text[])[place], ($5::bigint[])[place]
        FROM (SELECT width_bucket(job.seq, $1::bigint[]) AS place OFFSET 0) AS claimed
    )
WHERE job.seq = ANY ($1::bigint[]);
