-- Read the earliest instants at which a job becomes due, one expires, and a gate opens for those that wait.
-- With the last, when the first job has ended of which not all who wait for it have been told.
SELECT
    (SELECT min(run_at) FROM betimes_job WHERE status = 'delayed'),
    (SELECT min(expires_at) FROM betimes_job WHERE expires_at IS NOT NULL AND started_at IS NULL),
    least(
        (SELECT min(opens_at) FROM betimes_gate WHERE opens_at IS NOT NULL),
        (SELECT min(ended_at) FROM betimes_unsettled)
    );
