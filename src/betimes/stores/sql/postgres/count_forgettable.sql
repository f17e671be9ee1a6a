-- Count ended jobs that are not to be kept any longer: their own time first, then the store's.
SELECT (SELECT count(*) FROM betimes_finished WHERE forget_at IS NOT NULL AND forget_at <= $1::bigint)
    + (SELECT count(*) FROM betimes_finished WHERE forget_at IS NULL AND finished_at <= $2::bigint);
