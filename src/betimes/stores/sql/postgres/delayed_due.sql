-- Read delayed jobs whose start has come, earliest first.
SELECT * FROM betimes_live WHERE status = 'delayed' AND run_at <= $1::bigint ORDER BY run_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED;
