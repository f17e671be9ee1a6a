-- Read by queue since when the oldest claimable job has been due, as far as a bounded look tells.
WITH RECURSIVE head AS (
    (
        SELECT queue, lane, run_at FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
        ORDER BY queue, lane, sort_key, seq
        LIMIT 1
    )
    UNION ALL
    SELECT next.*
    FROM head CROSS JOIN LATERAL (
        SELECT queue, lane, run_at FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND (queue, lane) > (head.queue, head.lane)
        ORDER BY queue, lane, sort_key, seq
        LIMIT 1
    ) AS next
)
SELECT queue, min(run_at) FROM (
    SELECT queue, run_at FROM head
    UNION ALL
    SELECT queue, run_at FROM betimes_job
    WHERE seq = ANY (ARRAY(SELECT head_seq FROM betimes_line WHERE waits_at IS NULL LIMIT $2)) AND status = 'ready'
    UNION ALL
    SELECT queue, run_at FROM (
        SELECT queue, run_at, status, parked, gates FROM betimes_job ORDER BY seq LIMIT $2
    ) AS oldest
    WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
    UNION ALL
    (SELECT queue, run_at FROM betimes_job WHERE status = 'delayed' AND run_at <= $1::bigint ORDER BY run_at LIMIT $2)
) AS due
GROUP BY queue;
