-- List the queues and lanes in which lines wait at gates (a JSON array of keys): from one to the next in the index.
WITH RECURSIVE place (gate, queue, lane) AS (
    SELECT gate.value, line.queue, line.lane
    FROM json_each(?) AS gate CROSS JOIN betimes_line AS line
        ON line.id = (SELECT id FROM betimes_line WHERE waits_at = gate.value ORDER BY queue, lane LIMIT 1)
    UNION ALL
    SELECT place.gate, line.queue, line.lane
    FROM place CROSS JOIN betimes_line AS line
        ON line.id = (
            SELECT id FROM betimes_line
            WHERE waits_at = place.gate AND (queue, lane) > (place.queue, place.lane)
            ORDER BY queue, lane
            LIMIT 1
        )
)
SELECT gate, queue, lane FROM place;
