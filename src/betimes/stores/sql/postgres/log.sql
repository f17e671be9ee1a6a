-- Read the lines of a job's log behind one, in order.
SELECT number, at, attempt, source, level, text FROM betimes_log
WHERE seq = $1::bigint AND number > $2::bigint
ORDER BY number
LIMIT $3;
