-- Insert new live jobs.
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, expires_at, rare,
    token, gates, tenant, attempt, fence, cancel_requested, awaited
)
SELECT new.*, 0, 0, 0, 0
FROM unnest(
    $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::text[], $13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[]
) AS new;
