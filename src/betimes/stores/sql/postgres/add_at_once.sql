-- Keep new jobs that ask for nothing else, unless an id of theirs has been seen before: then none is kept.
-- Where the store's time is not given, it is the server's. Each answer is number, id, status and that time.
WITH this AS MATERIALIZED (
    SELECT coalesce($1::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) AS now
    WHERE NOT EXISTS (SELECT FROM betimes_job WHERE id = ANY ($2::text[]))
        AND NOT EXISTS (SELECT FROM betimes_finished WHERE id = ANY ($2::text[]))
)
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, expires_at, status,
    attempt, fence, cancel_requested, awaited
)
SELECT nextval('betimes_number'), new.*, CASE WHEN new.run_at > this.now THEN 'delayed' ELSE 'ready' END, 0, 0, 0, 0
FROM this CROSS JOIN unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::bigint[]
) AS new (id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, expires_at)
RETURNING seq, id, status, (SELECT now FROM this);
