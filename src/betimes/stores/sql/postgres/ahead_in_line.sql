-- Count the claimable jobs of a line that go before a place in the order, up to a limit.
SELECT count(*) FROM (
    SELECT FROM betimes_job
    WHERE status = 'ready' AND parked IS NULL AND gates IS NOT NULL
        AND queue = $1 AND lane = $2 AND hashtextextended(gates, 0) = hashtextextended($3, 0) AND gates = $3
        AND (sort_key, seq) < ($4::bigint, $5::bigint)
    LIMIT $6
) AS better;
