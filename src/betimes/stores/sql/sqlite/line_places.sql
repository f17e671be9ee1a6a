-- Read the first line that waits at each of these gates (a JSON array of keys), in each queue and lane where any does.
WITH RECURSIVE place (gate, queue, lane, line) AS (
    SELECT gate.value, first.queue, first.lane, first.id
    FROM json_each(?) AS gate CROSS JOIN betimes_line AS first
        ON first.id = (
            SELECT id FROM betimes_line
            WHERE waits_at = gate.value
            ORDER BY queue, lane, head_key, head_seq
            LIMIT 1
        )
    UNION ALL
    SELECT place.gate, next.queue, next.lane, next.id
    FROM place CROSS JOIN betimes_line AS next
        -- Two looks: one at (queue, lane) > (…) would go through all that wait in the place before.
        ON next.id = coalesce(
            (
                SELECT id FROM betimes_line
                WHERE waits_at = place.gate AND queue = place.queue AND lane > place.lane
                ORDER BY lane, head_key, head_seq
                LIMIT 1
            ),
            (
                SELECT id FROM betimes_line
                WHERE waits_at = place.gate AND queue > place.queue
                ORDER BY queue, lane, head_key, head_seq
                LIMIT 1
            )
        )
)
SELECT json_array(line.id, line.queue, line.lane, line.gates, line.head_key, line.head_seq, line.waits_at) AS record
FROM place CROSS JOIN betimes_line AS line ON line.id = place.line;
