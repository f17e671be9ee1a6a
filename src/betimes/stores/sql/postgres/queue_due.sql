-- Read the earliest start of the delayed jobs of a queue, if it is among the first delayed ones of all.
SELECT min(run_at) FROM (
    SELECT queue, run_at FROM betimes_job WHERE status = 'delayed' ORDER BY run_at LIMIT $2
) AS first
WHERE queue = $1;
