-- Read the first claimable jobs of a line.
SELECT sort_key, seq, id FROM betimes_job
WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL
    AND queue = $1 AND lane = $2 AND hashtextextended(gates, 0) = hashtextextended($3, 0) AND gates = $3
ORDER BY sort_key, seq
LIMIT $4;
