-- Read how lines (a JSON array of [queue, lane, gates]) stand in the table, and which job is really their first.
SELECT asked.place - 1, line.id, line.head_key, line.head_seq, line.waits_at, first.sort_key, first.seq
FROM json_array_elements($1::json) WITH ORDINALITY AS asked (name, place)
CROSS JOIN LATERAL (
    SELECT asked.name ->> 0 AS queue, asked.name ->> 1 AS lane, asked.name ->> 2 AS gates
) AS wanted
LEFT JOIN LATERAL (
    SELECT id, head_key, head_seq, waits_at FROM betimes_line
    WHERE queue = wanted.queue AND lane = wanted.lane
        AND hashtextextended(gates, 0) = hashtextextended(wanted.gates, 0) AND gates = wanted.gates
    LIMIT 1
) AS line ON true
LEFT JOIN LATERAL (
    SELECT sort_key, seq FROM betimes_job
    WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL AND queue = wanted.queue AND lane = wanted.lane
        AND hashtextextended(gates, 0) = hashtextextended(wanted.gates, 0) AND gates = wanted.gates
        AND (tenant IS NULL OR sort_key <> 9223372036854775807)
    ORDER BY sort_key, seq
    LIMIT 1
) AS first ON true;
