-- Read how lines (a JSON array of [queue, lane, gates]) stand in the file, and which job is really their first.
WITH wanted AS MATERIALIZED (
    SELECT asked.key, asked.value ->> 0 AS queue, asked.value ->> 1 AS lane, asked.value ->> 2 AS gates, (
        SELECT seq FROM betimes_job AS job
        WHERE job.status = 'ready' AND job.parked IS NULL AND job.gates IS NOT NULL
            AND job.queue = asked.value ->> 0 AND job.lane = asked.value ->> 1 AND job.gates = asked.value ->> 2
        ORDER BY job.sort_key, job.seq
        LIMIT 1
    ) AS first
    FROM json_each(?) AS asked
)
SELECT json_array(
    wanted.key, line.id, line.head_key, line.head_seq, line.waits_at,
    (SELECT sort_key FROM betimes_job WHERE seq = wanted.first), wanted.first
) AS record
FROM wanted
LEFT JOIN betimes_line AS line
    ON line.queue = wanted.queue AND line.lane = wanted.lane AND line.gates = wanted.gates;
