-- Read the first line that waits at each of these gates (a JSON array of keys), in each queue and lane where any does.
WITH RECURSIVE place AS (
    SELECT first.*
    FROM json_array_elements_text($1::json) AS gate (key) CROSS JOIN LATERAL (
        SELECT id, queue, lane, gates, head_key, head_seq, waits_at FROM betimes_line
        WHERE waits_at = gate.key
        ORDER BY queue, lane, head_key, head_seq
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.*
    FROM place CROSS JOIN LATERAL (
        SELECT id, queue, lane, gates, head_key, head_seq, waits_at FROM betimes_line
        WHERE waits_at = place.waits_at AND (queue, lane) > (place.queue, place.lane)
        ORDER BY queue, lane, head_key, head_seq
        LIMIT 1
    ) AS next
)
SELECT id, queue, lane, gates, head_key, head_seq, waits_at FROM place;
