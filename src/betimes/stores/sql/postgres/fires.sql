-- List what became of a schedule's instants up to one, newest first.
SELECT at, first_at, count, is_exact, outcome, decided_at, job_id, moved_from
FROM betimes_fire
WHERE schedule = $1 AND at < $2::bigint
ORDER BY at DESC, by_hand DESC
LIMIT $3;
