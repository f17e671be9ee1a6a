-- Read the earliest instants at which a job becomes due, one expires, and a gate opens for those that wait.
SELECT
    (SELECT min(run_at) FROM betimes_job WHERE status = 'delayed'),
    (SELECT min(expires_at) FROM betimes_job WHERE expires_at IS NOT NULL AND started_at IS NULL),
    (SELECT min(opens_at) FROM betimes_gate WHERE opens_at IS NOT NULL);
