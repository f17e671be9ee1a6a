-- Count the claimable jobs without gates of a queue and lane that go before a place in the order, up to a limit.
SELECT count(*) FROM (
    SELECT FROM betimes_job
    WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = $1 AND lane = $2
        AND (sort_key, seq) < ($3::bigint, $4::bigint)
    LIMIT $5
) AS better;
