-- Read the first claimable job without gates of each lane of a queue: from one lane to the next in the index.
WITH RECURSIVE head (seq) AS (
    SELECT (
        SELECT seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = ?1
        ORDER BY lane, sort_key, seq
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = ?1 AND lane > before.lane
        ORDER BY lane, sort_key, seq
        LIMIT 1
    )
    FROM head CROSS JOIN betimes_job AS before ON before.seq = head.seq
)
SELECT record FROM betimes_live WHERE seq IN (SELECT seq FROM head);
