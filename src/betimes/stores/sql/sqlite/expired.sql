-- Read jobs that were not started in time, earliest first.
SELECT record FROM betimes_live WHERE expires_at IS NOT NULL AND started_at IS NULL AND expires_at <= ?
ORDER BY expires_at, seq LIMIT ?;
