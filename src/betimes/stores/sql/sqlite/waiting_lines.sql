-- Read the first lines that wait at gates, in a queue and lane each (a JSON array of [gate, queue, lane]), of each so many.
SELECT json_array(line.id, line.queue, line.lane, line.gates, line.head_key, line.head_seq, line.waits_at) AS record
FROM json_each(?1) AS pull CROSS JOIN betimes_line AS line
    ON line.id IN (
        SELECT id FROM betimes_line
        WHERE waits_at = pull.value ->> 0 AND queue = pull.value ->> 1 AND lane = pull.value ->> 2
        ORDER BY head_key, head_seq
        LIMIT ?2
    );
