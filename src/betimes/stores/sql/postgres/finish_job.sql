-- Copy jobs that have ended to where ended jobs lie; what never changes is taken from their live rows.
-- The numbers are in order.
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, options, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    started_at, finished_at, expires_at, cancel_requested, rare, result, token, forget_at, gates, tenant
)
SELECT seq, id, task, queue, lane, priority, options, payload, submitted_at, ($2::bigint[])[place],
    ($3::bigint[])[place], ($4::text[])[place], ($5::integer[])[place], ($6::bigint[])[place], ($7::bigint[])[place],
    ($8::bigint[])[place], ($9::bigint[])[place], ($10::integer[])[place], ($11::text[])[place], ($12::text[])[place],
    token, ($13::bigint[])[place], gates, tenant
FROM (
    SELECT *, width_bucket(seq, $1::bigint[]) AS place FROM betimes_job WHERE seq = ANY ($1::bigint[]) OFFSET 0
) AS ended;
