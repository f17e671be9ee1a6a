-- Write the places of live jobs in another strategy's order; the numbers are in order.
UPDATE betimes_job AS job
SET (sort_key, tenant) = (
        SELECT ($2::bigint[])[place], ($3::text[])[place]
        FROM (SELECT width_bucket(job.seq, $1::bigint[]) AS place OFFSET 0) AS ordered
    )
WHERE job.seq = ANY ($1::bigint[]);
