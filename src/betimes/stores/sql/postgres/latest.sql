-- Read the latest instant at which something is on record to have happened, of the newest jobs, ends and fires.
SELECT max(at) FROM (
    SELECT submitted_at AS at FROM (SELECT submitted_at FROM betimes_job ORDER BY seq DESC LIMIT 1) AS newest
    UNION ALL
    SELECT max(finished_at) FROM betimes_finished WHERE forget_at IS NULL
    UNION ALL
    SELECT max(decided_at) FROM betimes_fire
) AS latest;
