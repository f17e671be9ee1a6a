-- Read where the next jobs of lines stand, without those that have expired and those to be held back (a JSON array of ids).
SELECT (
    SELECT coalesce(json_agg(json_build_array(sort_key, seq)), '[]') FROM (
        SELECT sort_key, seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL AND queue = $1 AND lane = $2
            AND hashtextextended(gates, 0) = hashtextextended(line.gates, 0) AND gates = line.gates
            AND (tenant IS NULL OR sort_key <> 9223372036854775807)
            AND (sort_key, seq) > ($4::bigint, $5::bigint)
            AND (expires_at IS NULL OR expires_at > $7::bigint OR started_at IS NOT NULL)
            AND id <> ALL (ARRAY(SELECT json_array_elements_text($8::json)))
        ORDER BY sort_key, seq
        LIMIT $6
        FOR UPDATE SKIP LOCKED
    ) AS next
) AS record
FROM json_array_elements_text($3::json) WITH ORDINALITY AS line (gates, place)
ORDER BY line.place;
