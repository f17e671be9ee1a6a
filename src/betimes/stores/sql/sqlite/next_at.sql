-- Read the earliest instants at which a job becomes due, and at which one expires.
SELECT
    (SELECT min(run_at) FROM betimes_job WHERE status = 'delayed'),
    (SELECT min(expires_at) FROM betimes_job WHERE expires_at IS NOT NULL AND started_at IS NULL);
