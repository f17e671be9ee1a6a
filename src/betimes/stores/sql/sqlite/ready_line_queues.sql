-- List the queues with lines that wait at no gate: from one to the next in the index.
WITH RECURSIVE ready (queue) AS (
    SELECT min(queue) FROM betimes_line WHERE waits_at IS NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM betimes_line WHERE waits_at IS NULL AND queue > ready.queue)
    FROM ready
    WHERE ready.queue IS NOT NULL
)
SELECT queue FROM ready WHERE queue IS NOT NULL;
