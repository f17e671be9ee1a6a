-- Find ended jobs that are not to be kept any longer: their own time first, then the store's.
SELECT seq FROM (
    SELECT seq FROM betimes_finished WHERE forget_at IS NOT NULL AND forget_at <= $1::bigint
    ORDER BY forget_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS own
UNION ALL
SELECT seq FROM (
    SELECT seq FROM betimes_finished WHERE forget_at IS NULL AND finished_at <= $2::bigint
    ORDER BY finished_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS common
LIMIT $3;
