-- Read the first claimable jobs without gates of a queue and lane, without those to be held back (a JSON array of ids).
SELECT * FROM betimes_live
WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = $1 AND lane = $2
    AND (tenant IS NULL OR sort_key <> 9223372036854775807)
    AND (expires_at IS NULL OR expires_at > $3::bigint OR started_at IS NOT NULL)
    AND id <> ALL (ARRAY(SELECT json_array_elements_text($4::json)))
ORDER BY sort_key, seq
LIMIT $5
FOR UPDATE SKIP LOCKED;
