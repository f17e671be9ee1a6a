-- Read jobs that were not started in time, earliest first.
SELECT * FROM betimes_live WHERE expires_at IS NOT NULL AND started_at IS NULL AND expires_at <= $1::bigint
ORDER BY expires_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED;
