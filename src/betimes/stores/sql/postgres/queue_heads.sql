-- Read the first claimable job without gates of each lane of a queue: from one lane to the next in the index.
WITH RECURSIVE head AS (
    (
        SELECT lane, seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = $1
        ORDER BY lane, sort_key, seq
        LIMIT 1
    )
    UNION ALL
    SELECT next.*
    FROM head CROSS JOIN LATERAL (
        SELECT lane, seq FROM betimes_job
        WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = $1 AND lane > head.lane
        ORDER BY lane, sort_key, seq
        LIMIT 1
    ) AS next
)
SELECT * FROM betimes_live WHERE seq = ANY (ARRAY(SELECT seq FROM head));
