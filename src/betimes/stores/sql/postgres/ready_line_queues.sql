-- List the queues with lines that wait at no gate: from one to the next in the index.
WITH RECURSIVE ready (queue) AS (
    (SELECT queue FROM betimes_line WHERE waits_at IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.queue
    FROM ready CROSS JOIN LATERAL (
        SELECT queue FROM betimes_line WHERE waits_at IS NULL AND queue > ready.queue ORDER BY queue LIMIT 1
    ) AS next
)
SELECT queue FROM ready;
