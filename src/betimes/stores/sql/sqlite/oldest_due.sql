-- Read by queue since when the oldest claimable job has been due, as far as a bounded look tells.
WITH RECURSIVE head (seq) AS (
    SELECT (
        SELECT seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
        ORDER BY queue, lane, sort_key, seq
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND (queue, lane) > (before.queue, before.lane)
        ORDER BY queue, lane, sort_key, seq
        LIMIT 1
    )
    FROM head CROSS JOIN betimes_job AS before ON before.seq = head.seq
)
SELECT queue, min(run_at) FROM (
    SELECT queue, run_at FROM betimes_job WHERE seq IN (SELECT seq FROM head)
    UNION ALL
    SELECT queue, run_at FROM betimes_job
    WHERE seq IN (SELECT head_seq FROM betimes_line WHERE waits_at IS NULL LIMIT ?2) AND status = 'ready'
    UNION ALL
    SELECT queue, run_at FROM (SELECT queue, run_at, status, parked, gates FROM betimes_job ORDER BY seq LIMIT ?2)
    WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
    UNION ALL
    SELECT queue, run_at FROM (
        SELECT queue, run_at FROM betimes_job WHERE status = 'delayed' AND run_at <= ?1 ORDER BY run_at LIMIT ?2
    )
)
GROUP BY queue;
