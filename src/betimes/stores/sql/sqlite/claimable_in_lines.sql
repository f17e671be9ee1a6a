-- Read where the next jobs of lines stand, without those that have expired and those to be held back (a JSON array of ids).
SELECT (
    SELECT json_group_array(json_array(sort_key, seq)) FROM (
        SELECT sort_key, seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL
            AND queue = ?1 AND lane = ?2 AND gates = line.value AND (sort_key, seq) > (?4, ?5)
            AND (expires_at IS NULL OR expires_at > ?7 OR started_at IS NOT NULL)
            AND id NOT IN (SELECT value FROM json_each(?8))
        ORDER BY sort_key, seq
        LIMIT ?6
    )
) AS record
FROM json_each(?3) AS line;
