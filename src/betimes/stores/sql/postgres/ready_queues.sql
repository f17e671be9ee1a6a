-- List the queues that have claimable jobs without gates: from one to the next in the index, nothing between is read.
WITH RECURSIVE ready (queue) AS (
    (
        SELECT queue FROM betimes_job WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
        ORDER BY queue
        LIMIT 1
    )
    UNION ALL
    SELECT next.queue
    FROM ready CROSS JOIN LATERAL (
        SELECT queue FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue > ready.queue
        ORDER BY queue
        LIMIT 1
    ) AS next
)
SELECT queue FROM ready WHERE queue <> ALL (ARRAY(SELECT queue FROM betimes_paused_queue));
