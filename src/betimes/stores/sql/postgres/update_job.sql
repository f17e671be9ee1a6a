-- Write what may change of live jobs; the numbers are in order.
UPDATE betimes_job AS job
SET (
        status, run_at, sort_key, attempt, fence, worker, started_at, expires_at, parked, cancel_requested, rare
    ) = (
        SELECT ($2::text[])[place], ($3::bigint[])[place], ($4::bigint[])[place], ($5::integer[])[place],
            ($6::bigint[])[place], ($7::text[])[place], ($8::bigint[])[place], ($9::bigint[])[place],
            ($10::text[])[place], ($11::integer[])[place], ($12::text[])[place]
        FROM (SELECT width_bucket(job.seq, $1::bigint[]) AS place OFFSET 0) AS changed
    )
WHERE job.seq = ANY ($1::bigint[]);
