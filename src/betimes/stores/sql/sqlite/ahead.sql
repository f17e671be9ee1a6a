-- Count the claimable jobs of a queue and lane that go before a place in the order, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM betimes_job
    WHERE status = 'ready' AND parked IS NULL AND queue = ? AND lane = ? AND (sort_key, seq) < (?, ?)
    LIMIT ?
);
