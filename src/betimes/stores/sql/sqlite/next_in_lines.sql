-- Read where the next jobs of lines stand, of a queue and lane (a JSON array of their gates), of each at most so many.
SELECT (
    SELECT json_group_array(json_array(sort_key, seq)) FROM (
        SELECT sort_key, seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL
            AND queue = ?1 AND lane = ?2 AND gates = line.value AND (sort_key, seq) > (?4, ?5)
        ORDER BY sort_key, seq
        LIMIT ?6
    )
) AS record
FROM json_each(?3) AS line;
