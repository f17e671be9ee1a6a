-- Read the first claimable jobs without gates of a queue and lane, without those to be held back (a JSON array of ids).
SELECT record FROM betimes_live
WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = ?1 AND lane = ?2
    AND (expires_at IS NULL OR expires_at > ?3 OR started_at IS NOT NULL)
    AND id NOT IN (SELECT value FROM json_each(?4))
ORDER BY sort_key, seq
LIMIT ?5;
