-- List the queues that have claimable jobs without gates: from one to the next in the index, nothing between is read.
WITH RECURSIVE ready (queue) AS (
    SELECT min(queue) FROM betimes_job WHERE status = 'ready' AND parked IS NULL AND gates IS NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM betimes_job WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue > ready.queue)
    FROM ready
    WHERE ready.queue IS NOT NULL
)
SELECT queue FROM ready WHERE queue IS NOT NULL AND queue NOT IN (SELECT queue FROM betimes_paused_queue);
