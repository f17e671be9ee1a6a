-- Read the lines of a job's log behind one, in order.
SELECT json_array(number, at, attempt, source, level, text) AS record FROM betimes_log
WHERE seq = ? AND number > ?
ORDER BY number
LIMIT ?;
