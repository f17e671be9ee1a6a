-- Read the first claimable jobs of a line.
SELECT json_array(sort_key, seq, id) AS record FROM betimes_job
WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL AND queue = ? AND lane = ? AND gates = ?
ORDER BY sort_key, seq
LIMIT ?;
