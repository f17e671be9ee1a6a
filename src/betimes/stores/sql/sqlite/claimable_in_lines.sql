-- Read the first claimable jobs of lines of a queue and lane (a JSON array of their gates), for each of them at most so many.
SELECT json_array(line.key, job.sort_key, job.seq) AS record
FROM json_each(?3) AS line CROSS JOIN betimes_job AS job
    ON job.seq IN (
        SELECT seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL
            AND queue = ?1 AND lane = ?2 AND gates = line.value
            AND (expires_at IS NULL OR expires_at > ?4 OR started_at IS NOT NULL)
            AND id NOT IN (SELECT value FROM json_each(?5))
            AND (sort_key, seq) > (?6, ?7)
        ORDER BY sort_key, seq
        LIMIT ?8
    );
