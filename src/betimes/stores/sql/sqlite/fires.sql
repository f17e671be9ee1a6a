-- List what became of a schedule's instants up to one, newest first.
SELECT json_array(at, first_at, count, is_exact, outcome, decided_at, job_id, moved_from) AS record
FROM betimes_fire
WHERE schedule = ? AND at < ?
ORDER BY at DESC, by_hand DESC
LIMIT ?;
