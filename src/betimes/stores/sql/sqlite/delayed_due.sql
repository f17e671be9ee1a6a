-- Read delayed jobs whose start has come, earliest first.
SELECT record FROM betimes_live WHERE status = 'delayed' AND run_at <= ? ORDER BY run_at, seq LIMIT ?;
