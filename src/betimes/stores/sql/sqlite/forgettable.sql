-- Find ended jobs that are not to be kept any longer: their own time first, then the store's.
SELECT seq FROM (SELECT seq FROM betimes_finished WHERE forget_at IS NOT NULL AND forget_at <= ?1 LIMIT ?3)
UNION ALL
SELECT seq FROM (SELECT seq FROM betimes_finished WHERE forget_at IS NULL AND finished_at <= ?2 LIMIT ?3)
LIMIT ?3;
