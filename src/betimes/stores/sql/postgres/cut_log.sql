-- Forget a job's oldest lines.
DELETE FROM betimes_log WHERE seq = $1::bigint AND number <= $2::bigint;
