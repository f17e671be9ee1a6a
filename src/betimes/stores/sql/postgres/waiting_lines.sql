-- Read the first lines that wait at gates, in a queue and lane each (a JSON array of [gate, queue, lane]), of each so many.
SELECT line.id, line.queue, line.lane, line.gates, line.head_key, line.head_seq, line.waits_at
FROM json_array_elements($1::json) AS pull CROSS JOIN LATERAL (
    SELECT id, queue, lane, gates, head_key, head_seq, waits_at FROM betimes_line
    WHERE waits_at = pull ->> 0 AND queue = pull ->> 1 AND lane = pull ->> 2
    ORDER BY head_key, head_seq
    LIMIT $2
) AS line;
